package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	register("F19_MaxClientsOnADefaultClient", testMaxClientsDefault, realServers)
	register("F19_PoolExhausted", testPoolExhausted, ofOneHolder)
	register("F19_RenewalsDoNotQueueBehindAcquires", testRenewalsAmongAcquires)
	register("F40_ReplicasWithoutAConnection", testReplicasWithoutConnection, oneRedis|noClusterNode|realServers)
	register("F40_ReplicasBesideOurSubscription", testReplicasBesideSubscription, ofOneHolder|oneRedis|noClusterNode|realServers)
	register("F40_LeasesOfAQuorumWithoutAConnection", testQuorumWithoutConnection, quorumOnly|realServers)
}

// The program, or our own subscription, may have all dedicated connections of the client, which
// rueidis would await forever.

// takeAll makes the program wait with BLPOP on all connections of a client with two of them to
// each server: one is for our own subscription later. free ends that.
func takeAll(t *testing.T, s locktest.Topology, client rueidis.Client) (free func()) {
	t.Helper()
	var all sync.WaitGroup
	for _, one := range locktest.Clients(client) {
		for range 2 {
			all.Go(func() { one.Do(context.Background(), one.B().Blpop().Key("jobs").Timeout(0).Build()) })
		}
	}
	for _, one := range s {
		locktest.Await(t, func() bool {
			list := one.Do(t, "CLIENT", "LIST")
			return strings.Count(list.String(), "cmd=blpop") == 2
		})
	}
	return sync.OnceFunc(func() {
		for _, one := range s {
			one.Do(t, "RPUSH", "jobs", "1", "2")
		}
		all.Wait()
	})
}

func two(o *rueidis.ClientOption) { o.BlockingPoolSize = 2 }

// closes requires that Close returns.
func closes(t *testing.T, l locktest.Locker) {
	t.Helper()
	done := locktest.Go(l.Close)
	require.NoError(t, locktest.Within(t, done))
}

func testReplicasWithoutConnection(t *testing.T, k locktest.Kind) {
	r := newReplicated(t, k, locktest.Long)
	var log redistest.Log
	client := r.Server.Client(t, two)
	locker := k.Open(t, client, locktest.Options{
		Lease: 15 * time.Second, Replicas: 2, ReplicaTimeout: replicaTime, MaxOutage: ptr(time.Second), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	l := locktest.Retry(t, locker, "held") // TryLock takes no connection for a subscription
	free := takeAll(t, r.Server, client)
	defer free()
	for _, lock := range []func(context.Context, string, ...holdfast.LockOption) (*holdfast.Lease, error){locker.TryLock, locker.Lock} {
		_, err := lock(locktest.Bounded(t), "k")
		for tries := 1; tries < 5 && errors.Is(err, holdfast.ErrUnknown); tries++ { // no answer in time
			_, err = lock(locktest.Bounded(t), "k")
		}
		locktest.RequireSentinel(t, err, holdfast.ErrUnavailable)
		require.ErrorContains(t, err, "BlockingPoolSize")
	}
	locktest.Await(t, func() bool { return !locktest.Exists(t, r.Server, "k") }) // a queue may have granted it
	for range 4 {                                                                // longer than a lease
		locktest.Renewed(t, l)
	}
	require.NoError(t, l.Err())
	require.Equal(t, 1, log.Count(`msg="holdfast: no dedicated connection`))

	closed := k.Open(t, client, locktest.Options{Lease: locktest.Long, Replicas: 2, ReplicaTimeout: replicaTime})
	waiting := locktest.GoLock(closed, locktest.Bounded(t), "other")
	closes(t, closed)
	require.Error(t, locktest.Within(t, waiting).Err)

	free()
	require.NoError(t, locktest.Retry(t, locker, "k").Unlock(locktest.Bounded(t)))
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
}

func testReplicasBesideSubscription(t *testing.T, k locktest.Kind) {
	r := newReplicated(t, k, locktest.Long)
	locker := k.Open(t, r.Server.Client(t, func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 }), locktest.Options{
		Lease: 15 * time.Second, Replicas: 2, ReplicaTimeout: replicaTime, MaxOutage: ptr(time.Second),
	})
	l, held := locktest.Retry(t, locker, "held"), locktest.Lock(t, r.free, locktest.Bounded(t), "k")
	waiting := locktest.GoLock(locker, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return k.Waiting(t, r.Server, "k") == 1 })
	require.NoError(t, held.Unlock(locktest.Bounded(t)))
	err := locktest.Within(t, waiting).Err
	locktest.RequireSentinel(t, err, holdfast.ErrUnavailable)
	require.ErrorContains(t, err, "BlockingPoolSize")
	locktest.Renewed(t, l)
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	closes(t, locker)
}

func testQuorumWithoutConnection(t *testing.T, k locktest.Kind) {
	s := k.Start(t)
	client := s.Client(t, two)
	locker := k.Open(t, client, locktest.Options{Lease: 30 * time.Second})
	l := locktest.Lock(t, locker, locktest.Bounded(t), "held")
	free := takeAll(t, s, client)
	defer free()
	for range 4 {
		locktest.Renewed(t, l)
	}
	for _, one := range s {
		one.Do(t, "SCRIPT", "FLUSH") // so each has to be looked at again
	}
	locktest.Await(t, func() bool {
		_, err := locker.TryLock(locktest.Bounded(t), "k")
		return err != nil && strings.Contains(err.Error(), "BlockingPoolSize")
	})
	free()
	require.NoError(t, locktest.Retry(t, locker, "k").Unlock(locktest.Bounded(t)))
	closes(t, locker)
}

// A client that says its name to a Redis which has no room for it is cut off
// before it reads why: unknown rather than unavailable.
func testMaxClientsDefault(t *testing.T, k locktest.Kind) {
	const most = 300 * time.Millisecond
	s := k.Start(t)
	locker := k.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long, MaxOutage: ptr(most)})
	require.NoError(t, locktest.Cycle(locker, locktest.Bounded(t), "k"))
	beginMaxClients(t, s)
	failed := func(_ *holdfast.Lease, err error) {
		t.Helper()
		require.True(t, errors.Is(err, holdfast.ErrUnknown) || errors.Is(err, holdfast.ErrUnavailable), err)
	}
	began := time.Now()
	failed(locker.TryLock(locktest.Bounded(t), "k"))
	failed(locker.TryLockFor(locktest.Bounded(t), "k", most/2))
	require.GreaterOrEqual(t, time.Since(began), most/2)
	failed(locker.Lock(locktest.Bounded(t), "k"))
	s.Do(t, "CONFIG", "SET", "maxclients", "1000")
	if k.Nodes > 0 { // which has to find its nodes back
		require.NoError(t, locktest.Retry(t, locker, "k").Unlock(locktest.Bounded(t)))
	}
	require.NoError(t, locktest.Cycle(locker, locktest.Bounded(t), "k"))
	locktest.Await(t, func() bool { return !locktest.Exists(t, s, "k") })
	immortal(t, s)
}

// The user has taken all dedicated connections of the client: none is left for
// messages. Waits end by their deadline, and find a release by looking.
func testPoolExhausted(t *testing.T, k locktest.Kind) {
	const lease = 9 * time.Second
	s := k.Start(t)
	client := s.Client(t, func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 })
	locker := k.Open(t, client, locktest.Options{Lease: lease})
	other := k.Open(t, s.Client(t), locktest.Options{Lease: lease})
	require.NoError(t, locktest.Cycle(locker, locktest.Bounded(t), "warm")) // a quorum looks at its nodes on such a connection
	for _, one := range locktest.Clients(client) {
		taken, giveBack := one.Dedicate()
		defer giveBack()
		require.NoError(t, taken.Do(locktest.Bounded(t), taken.B().Ping().Build()).Error())
	}

	held := locktest.Lock(t, other, locktest.Bounded(t), "k")
	began := time.Now()
	locktest.RequireSentinel(t, locktest.ErrOf(locker.TryLockFor(locktest.Bounded(t), "k", k.Limit())), holdfast.ErrNotAcquired)
	require.Less(t, time.Since(began), k.Limit()+20*time.Second)
	waiting := locktest.GoLock(locker, locktest.Bounded(t), "k")
	require.NoError(t, locktest.Next(t, held, waiting).Unlock(locktest.Bounded(t)))
	require.NoError(t, locker.Close())
}

// Many goroutines acquire all the time over a slow network; a lease on the same
// client is renewed in time.
func testRenewalsAmongAcquires(t *testing.T, k locktest.Kind) {
	lease, acquirers := 10*time.Second, 50
	if k.Nodes > 0 { // of which each is asked as often, within a tenth of the lease
		lease, acquirers = 15*time.Second, 20
	}
	r := newHarness(t, k, locktest.Options{Lease: lease})
	r.Proxy.SetDelay(50*time.Millisecond, 50*time.Millisecond)
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "held")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var workers sync.WaitGroup
	for i := range acquirers {
		workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if got, err := r.Locker.TryLock(ctx, fmt.Sprintf("key%d-%d", i, n)); err == nil {
					_ = got.Unlock(ctx)
				}
			}
		})
	}
	for range 2 {
		locktest.Renewed(t, l)
	}
	require.NoError(t, l.Err())
	stop()
	workers.Wait()
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
}

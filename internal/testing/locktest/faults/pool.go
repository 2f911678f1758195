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
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() {
	register("F19_MaxClientsOnADefaultClient", testMaxClientsDefault, realServers)
	register("F19_PoolExhausted", testPoolExhausted, ofOneHolder)
	register("F19_RenewalsDoNotQueueBehindAcquires", testRenewalsAmongAcquires)
	register("F40_ReplicasWithoutAConnection", testReplicasWithoutConnection, oneRedis|noClusterNode|realServers)
	register("F40_ReplicasBesideOurSubscription", testReplicasBesideSubscription, ofOneHolder|oneRedis|noClusterNode|realServers)
	register("F40_LeasesOfAQuorumWithoutAConnection", testQuorumWithoutConnection, quorumOnly)
}

// The program, or our own subscription, may have all dedicated connections of the client, which
// rueidis would await forever.

// takeAll takes all connections of a client with so many of them to each server, as a program does
// that waits with BLPOP. free gives them back.
func takeAll(t *testing.T, client rueidis.Client, size int) (free func()) {
	t.Helper()
	var all []func()
	for _, one := range locktest.Clients(client) {
		for range size {
			taken, giveBack := one.Dedicate()
			all = append(all, giveBack)
			require.NoError(t, taken.Do(locktest.Bounded(t), taken.B().Ping().Build()).Error())
		}
	}
	return sync.OnceFunc(func() {
		for _, giveBack := range all {
			giveBack()
		}
	})
}

// two connections: one is for our own subscription, later.
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
		Lease: 30 * time.Second, Replicas: 2, ReplicaTimeout: replicaTime, MaxOutage: ptr(time.Second), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	l := locktest.Retry(t, locker, "held") // TryLock takes no connection for a subscription
	free := takeAll(t, client, 2)
	defer free()
	for _, lock := range []func(context.Context, string, ...holdfast.LockOption) (*holdfast.Lease, error){locker.TryLock, locker.Lock} {
		_, err := lock(locktest.Bounded(t), "k")
		for tries := 1; tries < 5 && errors.Is(err, holdfast.ErrUnknown); tries++ { // no answer in time
			_, err = lock(locktest.Bounded(t), "k")
		}
		locktest.RequireSentinel(t, err, holdfast.ErrUnavailable, "BlockingPoolSize")
	}
	locktest.Await(t, func() bool { return !locktest.Exists(t, r.Server, "k") }) // a queue may have granted it
	for range 2 {
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
		Lease: 30 * time.Second, Replicas: 2, ReplicaTimeout: replicaTime, MaxOutage: ptr(time.Second),
	})
	l, held := locktest.Retry(t, locker, "held"), locktest.Lock(t, r.free, locktest.Bounded(t), "k")
	waiting := locktest.GoLock(locker, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return k.Waiting(t, r.Server, "k") == 1 })
	require.NoError(t, held.Unlock(locktest.Bounded(t)))
	err := locktest.Within(t, waiting).Err
	locktest.RequireSentinel(t, err, holdfast.ErrUnavailable, "BlockingPoolSize")
	locktest.Renewed(t, l)
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	closes(t, locker)
}

func testQuorumWithoutConnection(t *testing.T, k locktest.Kind) {
	s := k.Start(t)
	client := s.Client(t, two)
	locker := k.Open(t, client, locktest.Options{Lease: 30 * time.Second})
	l := locktest.Lock(t, locker, locktest.Bounded(t), "held")
	free := takeAll(t, client, 2)
	defer free()
	for range 4 {
		locktest.Renewed(t, l)
	}
	s.Do(t, "SCRIPT", "FLUSH") // so each node has to be looked at again
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
	defer takeAll(t, client, 1)()

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

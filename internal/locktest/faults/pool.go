package faults

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// The program, or our own subscription, has all dedicated connections of the client, which
// rueidis would await for ever.

func init() {
	register("F40_ReplicasWithoutAConnection", testReplicasWithoutConnection).real = true
	register("F40_ReplicasBesideOurSubscription", testReplicasBesideSubscription).real = true
	register("F40_LeasesOfAQuorumWithoutAConnection", testQuorumWithoutConnection).real = true
}

// takeAll makes the program wait with BLPOP on all connections of a client with two of them to
// each server: one is for our own subscription later. free ends that.
func takeAll(t *testing.T, s Topology, client rueidis.Client) (free func()) {
	t.Helper()
	var all sync.WaitGroup
	for _, one := range Clients(client) {
		for range 2 {
			all.Go(func() { one.Do(context.Background(), one.B().Blpop().Key("jobs").Timeout(0).Build()) })
		}
	}
	for _, one := range s {
		Await(t, func() bool {
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

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// closes requires that Close returns.
func closes(t *testing.T, l holdfast.Locker) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- l.Close() }()
	require.NoError(t, Within(t, done))
}

// tried is a lock by TryLock, which takes no connection for a subscription.
func tried(t *testing.T, locker holdfast.Locker, key string) (l *holdfast.Lease) {
	t.Helper()
	Await(t, func() bool {
		var err error
		l, err = locker.TryLock(Bounded(t), key)
		return err == nil
	})
	return l
}

func testReplicasWithoutConnection(t *testing.T, d Kind) {
	if d.Nodes > 0 || d.Cluster {
		t.Skip("it has no replicas")
	}
	r := newReplicated(t, d, Long)
	var log lines
	client := r.Server.Client(t, two)
	locker := d.Open(t, client, Options{
		Lease: 3 * time.Second, Replicas: 2, ReplicaTimeout: replicaTime, MaxOutage: ptr(time.Second), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	l := tried(t, locker, "held")
	free := takeAll(t, r.Server, client)
	defer free()
	for _, lock := range []func() (*holdfast.Lease, error){
		func() (*holdfast.Lease, error) { return locker.TryLock(Bounded(t), "k") },
		func() (*holdfast.Lease, error) { return locker.Lock(Bounded(t), "k") },
	} {
		_, err := lock()
		RequireSentinel(t, err, holdfast.ErrUnavailable)
		require.ErrorContains(t, err, "BlockingPoolSize")
	}
	Await(t, func() bool { return !Exists(t, r.Server, "k") }) // a queue may have granted it
	for range 4 {                                              // longer than a lease
		until := l.Deadline()
		Await(t, func() bool { return l.Deadline().After(until) })
	}
	require.NoError(t, l.Err())
	require.Equal(t, 1, log.count("msg=\"holdfast: no dedicated connection"))

	closed := d.Open(t, client, Options{Lease: Long, Replicas: 2, ReplicaTimeout: replicaTime})
	waiting := GoLock(closed, Bounded(t), "other")
	closes(t, closed)
	require.Error(t, Within(t, waiting).Err)

	free()
	require.NoError(t, tried(t, locker, "k").Unlock(Bounded(t)))
	require.NoError(t, l.Unlock(Bounded(t)))
}

func testReplicasBesideSubscription(t *testing.T, d Kind) {
	if d.Nodes > 0 || d.Cluster {
		t.Skip("it has no replicas")
	}
	r := newReplicated(t, d, Long)
	locker := d.Open(t, r.Server.Client(t, func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 }), Options{
		Lease: 6 * time.Second, Replicas: 2, ReplicaTimeout: replicaTime, MaxOutage: ptr(time.Second),
	})
	l, held := tried(t, locker, "held"), Lock(t, r.free, Bounded(t), "k")
	waiting := GoLock(locker, Bounded(t), "k")
	Await(t, func() bool { return d.Waiting(t, r.Server, "k") == 1 })
	require.NoError(t, held.Unlock(Bounded(t)))
	err := Within(t, waiting).Err
	RequireSentinel(t, err, holdfast.ErrUnavailable)
	require.ErrorContains(t, err, "BlockingPoolSize")
	until := l.Deadline()
	Await(t, func() bool { return l.Deadline().After(until) })
	require.NoError(t, l.Unlock(Bounded(t)))
	closes(t, locker)
}

func testQuorumWithoutConnection(t *testing.T, d Kind) {
	if d.Nodes == 0 {
		t.Skip("its votes need one")
	}
	s := d.Start(t)
	client := s.Client(t, two)
	locker := d.Open(t, client, Options{Lease: 3 * time.Second})
	l := Lock(t, locker, Bounded(t), "held")
	free := takeAll(t, s, client)
	defer free()
	for range 4 {
		until := l.Deadline()
		Await(t, func() bool { return l.Deadline().After(until) })
	}
	for _, one := range s {
		one.Do(t, "SCRIPT", "FLUSH") // so each has to be looked at again
	}
	Await(t, func() bool {
		_, err := locker.TryLock(Bounded(t), "k")
		return err != nil && strings.Contains(err.Error(), "BlockingPoolSize")
	})
	free()
	require.NoError(t, tried(t, locker, "k").Unlock(Bounded(t)))
	closes(t, locker)
}

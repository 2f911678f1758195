package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() {
	register("F25_ReplicasConfirm", testReplicasConfirm, ofOneHolder|oneRedis|noClusterNode|realServers)
	register("F25_ReplicasTooFew", testReplicasTooFew, oneRedis|noClusterNode|realServers)
	register("F25_ReplicasMayNotBeAsked", testReplicasMayNotBeAsked, ofOneHolder|oneRedis|noClusterNode|realServers)
	register("F25_ReplicasTooFewForAnEntry", testReplicasTooFewForAnEntry, oneRedis|noClusterNode|realServers)
	register("F25_ReplicasTooFewForAGrant", testReplicasTooFewForAGrant, fairOnly|oneRedis|noClusterNode|realServers)
	register("F25_ReplicasTooFewForARenewal", testReplicasTooFewForARenewal, oneRedis|noClusterNode|realServers)
}

// replicated is a locker that wants two replicas to confirm, and another on the same
// client that wants none.
type replicated struct {
	*harness
	replica *redistest.Server // one of the two
	free    locktest.Locker
}

const replicaTime = 2 * time.Second // at most half of the time of a call, which is a third of the lease

func newReplicated(t *testing.T, k locktest.Kind, lease time.Duration) *replicated {
	s := k.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(s[0].Addr())
	require.NoError(t, err)
	var last *redistest.Server
	for range 2 {
		last = redistest.Start(t, "--replicaof", host, port)
	}
	locktest.Await(t, func() bool { return locktest.Number(t, s, "WAIT", "2", "100") == 2 })
	r := &replicated{newHarnessOn(t, k, s, locktest.Options{Lease: lease, Replicas: 2, ReplicaTimeout: replicaTime}), last, nil}
	r.free = k.Open(t, r.Client, locktest.Options{Lease: lease})
	return r
}

// All that a locker does works, and fills the replicas before it counts.
func testReplicasConfirm(t *testing.T, k locktest.Kind) {
	r := newReplicated(t, k, 30*time.Second)
	ctx := locktest.Bounded(t)
	l := locktest.Lock(t, r.Locker, ctx, "k")
	require.Equal(t, 1, locktest.Number(t, r.replica, "EXISTS", "k"))
	inner := locktest.Lock(t, r.Locker, l.Bind(ctx), "k")
	require.Equal(t, 2, entriesOn(t, k, r.replica, l))
	waiter := locktest.GoLock(r.Other, ctx, "k")
	r.AwaitWaiters("k", 1)
	locktest.Renewed(t, l)
	require.NoError(t, inner.Unlock(ctx))
	require.NoError(t, l.Unlock(ctx))
	next := locktest.Got(t, waiter)
	require.Equal(t, 1, entriesOn(t, k, r.replica, next))
	require.NoError(t, next.Unlock(ctx))
}

// entriesOn is how often a server says that a lease's owner has entered.
func entriesOn(t *testing.T, k locktest.Kind, s *redistest.Server, l *holdfast.Lease) int {
	n, name := 0, l.Key()
	if k.Permits {
		name = locktest.OfKey("holdfast_permits", name)
	}
	require.NoError(t, locktest.ErrOf(fmt.Sscan(locktest.Text(t, s, "HGET", name, l.Owner()), &n))) // the label follows
	return n
}

// A lock that too few replicas have is refused and undone. A wait goes on. What needs no
// replica is not delayed.
func testReplicasTooFew(t *testing.T, k locktest.Kind) {
	r := newReplicated(t, k, locktest.Long)
	ctx := locktest.Bounded(t)
	var held []*holdfast.Lease
	for n := range 5 {
		held = append(held, locktest.Lock(t, r.Locker, ctx, fmt.Sprint("held", n)))
	}
	r.replica.Pause()
	var tried <-chan error
	var key string
	meanwhile := false
	for n := 0; n < len(held) && !meanwhile; n++ { // a machine that stands still is late for some of them
		key = fmt.Sprint("tried", n)
		tried = locktest.Go(func() error { return locktest.ErrOf(r.Locker.TryLock(ctx, key)) })
		locktest.Await(t, func() bool { return len(tried) > 0 || locktest.Exists(t, r.Server, key) }) // WAIT goes on
		require.NoError(t, held[n].Unlock(ctx))
		require.NoError(t, locktest.Lock(t, r.free, ctx, "other").Unlock(ctx))
		meanwhile = len(tried) == 0
	}
	require.True(t, meanwhile, "delayed until WAIT is over")
	err := locktest.Within(t, tried)
	for tries := 1; tries < 5 && late(err); tries++ {
		key = fmt.Sprint(key, tries)
		err = locktest.ErrOf(r.Locker.TryLock(ctx, key))
	}
	require.ErrorIs(t, err, holdfast.ErrNotReplicated)
	locktest.RequireSentinel(t, err, holdfast.ErrUnknown, "1 of 2 replicas")
	r.Tidy(key)

	before := tombstones(r.harness)
	waiter := locktest.GoLock(r.Locker, ctx, "k")
	locktest.Await(t, func() bool { return locktest.Exists(t, r.Server, "k") })
	if !k.Fair { // a queued waiter keeps what it was granted, and asks again
		locktest.Await(t, func() bool { return tombstones(r.harness) > before }, "an attempt is not undone")
	}
	r.replica.Resume()
	require.NoError(t, locktest.Got(t, waiter).Unlock(ctx))
}

// late reports whether a call had no answer in time.
func late(err error) bool {
	return errors.Is(err, holdfast.ErrUnknown) && !errors.Is(err, holdfast.ErrNotReplicated)
}

// Where WAIT is refused no lock and no entry counts, and nothing is left of it. No call waits for
// a cure.
func testReplicasMayNotBeAsked(t *testing.T, k locktest.Kind) {
	r := newReplicated(t, k, locktest.Long)
	held := locktest.Lock(t, r.Locker, locktest.Bounded(t), "held")
	const proxyLacksIt = "ERR unknown command 'WAIT', with args beginning with: '2' '2000' "
	for _, words := range []string{"", proxyLacksIt} {
		text := "NOPERM"
		if words != "" {
			r.Server[0].Do(t, "ACL", "SETUSER", "default", "+wait")
			r.Proxy.OwnWords(words, true, locktest.Is("wait"))
			text = "unknown command 'WAIT'"
		} else {
			r.Server[0].Do(t, "ACL", "SETUSER", "default", "-wait")
		}
		refused := func(key string, lock func(context.Context, string, ...holdfast.LockOption) (*holdfast.Lease, error), ctx context.Context) {
			t.Helper()
			_, err := lock(ctx, key)
			locktest.RequireSentinel(t, err, nil)
			require.NotErrorIs(t, err, holdfast.ErrNotReplicated)
			require.ErrorContains(t, err, "WAIT")
			require.ErrorContains(t, err, text)
			require.NotContains(t, err.Error(), "'2000'")
		}
		refused("k", r.Locker.TryLock, locktest.Bounded(t))
		require.NoError(t, locktest.Got(t, locktest.GoLock(r.free, locktest.Bounded(t), "k")).Unlock(locktest.Bounded(t)))
		refused("k", r.Locker.Lock, locktest.Bounded(t))
		r.Tidy("k")
		refused("held", r.Locker.TryLock, held.Bind(locktest.Bounded(t)))
		locktest.Await(t, func() bool { return r.Entries("held") == 1 })

		l := locktest.Lock(t, r.free, locktest.Bounded(t), "waited for")
		waiter := locktest.GoLock(r.Locker, locktest.Bounded(t), "waited for")
		r.AwaitWaiters("waited for", 1)
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
		err := locktest.Within(t, waiter).Err
		locktest.RequireSentinel(t, err, nil, text)
		r.Tidy("waited for")
	}
	r.Proxy.OwnWords("", true, nil)
	require.NoError(t, held.Err())
	require.NoError(t, held.Unlock(locktest.Bounded(t)))
}

// A nested entry that too few replicas have is refused and undone; the hold goes on. The end of
// an entry needs no replica.
func testReplicasTooFewForAnEntry(t *testing.T, k locktest.Kind) {
	r := newReplicated(t, k, locktest.Long)
	ctx := locktest.Bounded(t)
	l := locktest.Lock(t, r.Locker, ctx, "k")
	inner := locktest.Lock(t, r.Locker, l.Bind(ctx), "k")
	r.replica.Pause()
	require.NoError(t, inner.Unlock(ctx))
	_, err := r.Locker.TryLock(l.Bind(ctx), "k")
	for tries := 1; tries < 5 && late(err); tries++ {
		_, err = r.Locker.TryLock(l.Bind(ctx), "k")
	}
	require.ErrorIs(t, err, holdfast.ErrNotReplicated)
	require.ErrorIs(t, err, holdfast.ErrUnknown)
	require.NoError(t, l.Err())
	r.replica.Resume()
	locktest.Await(t, func() bool { return r.Entries("k") == 1 })
	require.NoError(t, l.Unlock(ctx))
	r.Tidy("k")
}

// A grant counts only when the waiter has confirmed it and enough replicas have that.
func testReplicasTooFewForAGrant(t *testing.T, k locktest.Kind) {
	r := newReplicated(t, k, locktest.Long)
	ctx := locktest.Bounded(t)
	l := locktest.Lock(t, r.Other, ctx, "k")
	waiter := locktest.GoLock(r.Locker, ctx, "k")
	r.AwaitWaiters("k", 1)
	asked := make(chan struct{}, 1)
	r.Proxy.OnRequest(seeing(locktest.Is("confirm"), func() { loop.Poke(asked) }))
	r.replica.Pause()
	require.NoError(t, l.Unlock(ctx))
	locktest.Within(t, asked)
	require.Empty(t, waiter)
	r.replica.Resume()
	require.NoError(t, locktest.Got(t, waiter).Unlock(ctx))
}

// Renewals that too few replicas have do not prolong a lease, though the master has them.
func testReplicasTooFewForARenewal(t *testing.T, k locktest.Kind) {
	const lease = 30 * time.Second
	r := newReplicated(t, k, lease)
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	deadline := l.Deadline()
	r.replica.Pause()
	locktest.Await(t, func() bool {
		expiry := time.Duration(locktest.Number(t, r.Server, "PTTL", "k")) * time.Millisecond
		return time.Now().Add(expiry).After(deadline.Add(lease / 6))
	}, "the master was not renewed")
	locktest.Within(t, l.Done())
	require.ErrorIs(t, l.Err(), holdfast.ErrLost)
	require.Equal(t, deadline, l.Deadline())
	r.replica.Resume()
}

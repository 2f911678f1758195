package faults

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// What a quorum of several nodes bears that one Redis does not: the fault of one of
// them.

func init() {
	register("F17_OneSlowNodeSlowsNothing", testOneSlow, severalNodes)
	register("F20_OneNodeBackEmpty", func(t *testing.T, k locktest.Kind) { testOneForgets(t, k, true, locktest.Server.Restart) }, severalNodes)
	register("F20_OneNodeBackEmptyUnguarded", func(t *testing.T, k locktest.Kind) { testOneForgets(t, k, false, locktest.Server.Restart) }, severalNodes)
	for name, c := range map[string]wrongClock{
		"Ahead": {time.Minute, 1}, "Back": {-time.Minute, 1}, "×2": {0, 2}, "×0.5": {0, 0.5}, "×1.01": {0, 1.01},
	} {
		register("F34_OneClock"+name, func(t *testing.T, k locktest.Kind) { testOneClock(t, k, c) }, severalNodes|realServers)
	}
	register("F34_ClockJumpsAhead", clockAhead, ofOneHolder|oneRedis|realServers)
	register("F34_ClockJumpsBack", clockBack, ofOneHolder|oneRedis|realServers)
	for name, rate := range map[string]float64{"×1.01": 1.01, "×1.5": 1.5, "×0.5": 0.5} {
		register("F34_ClockRuns"+name, func(t *testing.T, k locktest.Kind) { clockRuns(t, k, rate) }, ofOneHolder|oneRedis|realServers)
	}
}

// A lock takes as long as the slower of the quorum's nodes, not as the slowest of
// all.
func testOneSlow(t *testing.T, k locktest.Kind) {
	const way = 3 * time.Second
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	require.NoError(t, locktest.Cycle(r.Locker, locktest.Bounded(t), "warm")) // all nodes are known
	r.Proxy.All[0].SetDelay(way, way)
	for i := range 10 {
		key := fmt.Sprint("key", i) // its own: of the last one, a node may not have been told yet
		began := time.Now()
		l := locktest.Lock(t, r.Locker, locktest.Bounded(t), key)
		inner := locktest.Lock(t, r.Locker, l.Bind(locktest.Bounded(t)), key)
		require.NoError(t, inner.Unlock(locktest.Bounded(t)))
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
		require.Less(t, time.Since(began), 2*way, "one round trip to the slow node")
	}
	r.Proxy.All[0].SetDelay(0, 0)
	for i := range 10 {
		r.Tidy(fmt.Sprint("key", i))
	}
}

// The holder has a bare quorum, of which one node forgets. With those that the
// holder has missed it would make a quorum for another; so it has no vote until the
// holder's lease is over. Without the guard there are two holders, which shows that
// the test can fail.
func testOneForgets(t *testing.T, k locktest.Kind, guarded bool, forget func(locktest.Server), args ...string) {
	if guarded {
		redistest.NeedRedis7(t, "it keeps scripts over a restart, so there is no restart guard")
	}
	lease := 30 * time.Second
	if guarded { // for which the next holder waits
		lease /= 3
	}
	r := newHarnessOn(t, k, k.Start(t, args...), locktest.Options{Lease: lease, MaxLease: lease, Unguarded: !guarded, Fencing: true})
	bare := k.Nodes/2 + 1
	for _, p := range r.Proxy.All[bare:] {
		p.Refuse(true)
		p.Cut()
	}
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	forget(r.Server[0])
	next := locktest.Retry(t, r.Other, "k")
	if !guarded {
		require.NoError(t, l.Err(), "the control finds nothing")
		return
	}
	require.ErrorIs(t, l.Err(), holdfast.ErrLost, "two holders")
	k.Grown(t, l.Fence(), next.Fence())
	require.ErrorIs(t, l.Unlock(locktest.Bounded(t)), holdfast.ErrLost)
	require.Equal(t, next.Owner(), r.Owner("k"))
	require.NoError(t, next.Unlock(locktest.Bounded(t)))
}

// The clock of one node is wrong. Locks are held, renewed, kept from others, and
// go from one holder to the next.
func testOneClock(t *testing.T, k locktest.Kind, c wrongClock) {
	var f locktest.Topology
	for range k.Nodes {
		f = append(f, redistest.StartWithClock(t))
	}
	o := locktest.Options{Lease: 30 * time.Second, MaxLease: 30 * time.Second, Fencing: true}
	locker, other := k.Open(t, f.Client(t), o), k.Open(t, f.Client(t), o)
	last := int64(0)
	for _, to := range []wrongClock{c, {0, 1}} {
		l := locktest.Lock(t, locker, locktest.Bounded(t), "k")
		for _, s := range f { // one that missed it, and a faulty clock, would be two
			locktest.Await(t, func() bool { return locktest.Number(t, s, "HEXISTS", "k", l.Owner()) == 1 })
		}
		locktest.Real(f[0]).SetClock(to.ahead, to.rate)
		for range 2 {
			locktest.Renewed(t, l)
			locktest.Await(t, func() bool { // nodes have a tenth of a lease to answer
				err := locktest.ErrOf(other.TryLock(locktest.Bounded(t), "k"))
				require.Error(t, err, "two holders")
				return errors.Is(err, holdfast.ErrNotAcquired)
			})
		}
		waiting := locktest.GoLock(other, locktest.Bounded(t), "k")
		next := locktest.Next(t, l, waiting)
		k.Grown(t, last, l.Fence())
		k.Grown(t, l.Fence(), next.Fence())
		last = next.Fence()
		require.NoError(t, next.Unlock(locktest.Bounded(t)))
	}
}

// wrongClock is one that is ahead and runs at a rate.
type wrongClock struct {
	ahead time.Duration
	rate  float64
}

// onClock is lockers of different clients on a server whose clock can be moved.
func onClock(t *testing.T, k locktest.Kind, lockers int, lease time.Duration) (*redistest.Server, []locktest.Locker) {
	s := redistest.StartWithClock(t)
	ls := make([]locktest.Locker, lockers)
	for i := range ls {
		ls[i] = k.Open(t, s.Client(t), locktest.Options{Lease: lease, Fencing: true})
	}
	return s, ls
}

// A jump ahead ends all leases in Redis: the holder learns of it at its next renewal,
// waiters go on to be served, and fences grow.
func clockAhead(t *testing.T, k locktest.Kind) {
	s, l := onClock(t, k, 3, 30*time.Second)
	ctx := locktest.Bounded(t)
	first := locktest.Lock(t, l[0], ctx, "k")
	second, third := locktest.GoLock(l[1], ctx, "k"), locktest.GoLock(l[2], ctx, "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "k") == 2 })
	s.SetClock(time.Minute, 1)
	locktest.Within(t, first.Done())
	require.ErrorIs(t, first.Err(), holdfast.ErrLost)
	last := first.Fence()
	for range 2 {
		next := locktest.Got(t, firstOf(second, third))
		k.Grown(t, last, next.Fence())
		last = next.Fence()
		require.NoError(t, next.Unlock(ctx))
	}
}

// firstOf is whatever comes first out of two channels.
func firstOf(a, b <-chan locktest.Acquired) <-chan locktest.Acquired {
	one := make(chan locktest.Acquired, 1)
	go func() {
		select {
		case x := <-a:
			one <- x
		case x := <-b:
			one <- x
		}
	}()
	return one
}

// A jump back ends nothing, and fences grow all the same.
func clockBack(t *testing.T, k locktest.Kind) {
	s, l := onClock(t, k, 2, 30*time.Second)
	ctx := locktest.Bounded(t)
	first := locktest.Lock(t, l[0], ctx, "k")
	second := locktest.GoLock(l[1], ctx, "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "k") == 1 })
	s.SetClock(-time.Minute, 1)
	locktest.Renewed(t, first)
	require.NoError(t, first.Unlock(ctx))
	next := locktest.Got(t, second)
	k.Grown(t, first.Fence(), next.Fence())
	locktest.Renewed(t, next)
	require.NoError(t, next.Unlock(ctx))
}

// Under a clock that runs wrong, leases that are renewed live on.
func clockRuns(t *testing.T, k locktest.Kind, rate float64) {
	s, l := onClock(t, k, 2, time.Minute) // a renewal may be 20 s late even if Redis thinks that 1.5 times as long has passed
	ctx := t.Context()                    // two renewals take most of a minute
	s.SetClock(0, rate)
	first := locktest.Lock(t, l[0], ctx, "k")
	second := locktest.GoLock(l[1], ctx, "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "k") == 1 })
	locktest.Renewed(t, first)
	locktest.Renewed(t, first)
	require.NoError(t, first.Unlock(ctx))
	require.NoError(t, locktest.Got(t, second).Unlock(ctx))
}

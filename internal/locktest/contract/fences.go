package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// G10: numbers of one key strictly grow.
var fenceCases = []testCase{
	{"G10_NumbersGrow", locktest.Options{Fencing: true, Lease: 20 * time.Second, Handover: &longTenure, Unguarded: true}, g10Grow},
	{"G10_OneForEachLease", locktest.Options{Fencing: true, Lease: 9 * time.Second}, g10Lease},
	{"G10_NoneWithoutFencing", defaults, g10None},
}

func g10Grow(c *harness) {
	counter := locktest.OfKey("redisson_lock_token", c.Name("k"))
	last := int64(0)
	grown := func(l *holdfast.Lease) *holdfast.Lease {
		c.T.Helper()
		require.Greater(c.T, l.Fence(), last)
		last = l.Fence()
		return l
	}
	handOver := func() {
		l := grown(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
		c.unlock(c.serve(l, c.queues(3, "k"), func(_ int, _, next *holdfast.Lease) { grown(next) }))
	}
	lost := func(lose func()) func() {
		return func() {
			if c.Kind.Nodes > 1 { // a node that was late keeps the numbers of a tenure, which are ahead of its clock
				locktest.Await(c.T, func() bool { return micros(c.T, c.Server[0]) > last })
			}
			lose()
		}
	}
	for _, between := range []func(){
		func() {},
		handOver,
		func() { handOver(); lost(func() { c.Server.Do(c.T, "FLUSHALL") })() },
		lost(func() { c.Server.Do(c.T, "DEL", counter) }),
		lost(func() { c.Server.Do(c.T, "PEXPIRE", counter, "1") }),
		lost(func() { c.Server.Do(c.T, "SET", counter, "41") }), // as Java does
		lost(func() { c.Server.Restart() }),
		func() { // the lease expires
			l := grown(locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(100*time.Millisecond)))
			locktest.Await(c.T, func() bool { return !locktest.Exists(c.T, c.Server, c.Name("k")) })
			require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
		},
		func() {
			grown(locktest.Lock(c.T, c.Other, c.ctx, "k"))
			c.force(c.Other, "k")
		},
		func() { // the counter is an hour ahead of the clock
			c.Server.Do(c.T, "INCRBY", counter, "3600000000")
			last += 3_600_000_000 - 1
		},
		handOver,
	} {
		between()
		for _, locker := range []locktest.Locker{c.Other, c.Locker, c.Other} {
			c.unlock(grown(locktest.Lock(c.T, locker, c.ctx, "k")))
		}
	}
}

// micros is what a server's clock says, in µs.
func micros(t testing.TB, s locktest.Server) int64 {
	t.Helper()
	m := s.Do(t, "TIME")
	parts, err := m.AsIntSlice()
	require.NoError(t, err)
	return parts[0]*1_000_000 + parts[1]
}

// Neither an entry nor a renewal changes it.
func g10Lease(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	fence, deadline := l.Fence(), l.Deadline()
	require.NoError(c.T, c.Locker.Do(l.Bind(c.ctx), "k", func(context.Context) error { return nil }))
	locktest.Await(c.T, func() bool { return l.Deadline().After(deadline) })
	inner := locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k")
	require.Equal(c.T, []int64{fence, fence}, []int64{l.Fence(), inner.Fence()})
	c.unlock(l)
	c.unlock(inner)
	require.Equal(c.T, fence, l.Fence())
}

func g10None(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	require.Zero(c.T, l.Fence())
	c.unlock(l)
}

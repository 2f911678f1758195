package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// G10: numbers of one key strictly grow.
var fenceCases = []contractCase{
	{"G10_NumbersGrow", Options{Fencing: true, Lease: 20 * time.Second, Handover: &longTenure, Unguarded: true}, g10Grow},
	{"G10_OneForEachLease", Options{Fencing: true, Lease: time.Second}, g10Lease},
	{"G10_NoneWithoutFencing", defaults, g10None},
}

func g10Grow(c *contractRig) {
	const counter = "redisson_lock_token:{k}"
	last := int64(0)
	grown := func(l *holdfast.Lease) *holdfast.Lease {
		c.t.Helper()
		require.Greater(c.t, l.Fence(), last)
		last = l.Fence()
		return l
	}
	handOver := func() {
		l := grown(lock(c.t, c.locker, c.ctx, "k"))
		for _, w := range []<-chan acquired{c.queue(c.locker, "k"), c.queue(c.locker, "k"), c.queue(c.locker, "k")} {
			c.unlock(l)
			l = grown(got(c.t, w))
		}
		c.unlock(l)
	}
	lost := func(lose func()) func() {
		return func() {
			if c.kind.Nodes > 1 { // a node that was late keeps the numbers of a tenure, which are ahead of its clock
				await(c.t, func() bool { return micros(c.t, c.server[0]) > last })
			}
			lose()
		}
	}
	for _, between := range []func(){
		func() {},
		handOver,
		func() { handOver(); lost(func() { c.server.Do(c.t, "FLUSHALL") })() },
		lost(func() { c.server.Do(c.t, "DEL", counter) }),
		lost(func() { c.server.Do(c.t, "PEXPIRE", counter, "1") }),
		lost(func() { c.server.Do(c.t, "SET", counter, "41") }), // as Java does
		lost(func() { c.server.Restart() }),
		func() { // the lease expires
			l := grown(lock(c.t, c.locker, c.ctx, "k", holdfast.FixedLease(100*time.Millisecond)))
			await(c.t, func() bool { return !exists(c.t, c.server, "k") })
			require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
		},
		func() {
			grown(lock(c.t, c.other, c.ctx, "k"))
			_, err := c.other.ForceUnlock(c.ctx, "k")
			require.NoError(c.t, err)
		},
		func() { // the counter is an hour ahead of the clock
			c.server.Do(c.t, "INCRBY", counter, "3600000000")
			last += 3_600_000_000 - 1
		},
		handOver,
	} {
		between()
		for _, locker := range []holdfast.Locker{c.other, c.locker, c.other} {
			c.unlock(grown(lock(c.t, locker, c.ctx, "k")))
		}
	}
}

// micros is what a server's clock says, in µs.
func micros(t testing.TB, s *redistest.Server) int64 {
	t.Helper()
	m := s.Do(t, "TIME")
	parts, err := m.AsIntSlice()
	require.NoError(t, err)
	return parts[0]*1_000_000 + parts[1]
}

// Neither an entry nor a renewal changes it.
func g10Lease(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	fence, deadline := l.Fence(), l.Deadline()
	require.NoError(c.t, c.locker.Do(l.Bind(c.ctx), "k", func(context.Context) error { return nil }))
	await(c.t, func() bool { return l.Deadline().After(deadline) })
	inner := lock(c.t, c.locker, l.Bind(c.ctx), "k")
	require.Equal(c.t, []int64{fence, fence}, []int64{l.Fence(), inner.Fence()})
	c.unlock(l)
	c.unlock(inner)
	require.Equal(c.t, fence, l.Fence())
}

func g10None(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	require.Zero(c.t, l.Fence())
	c.unlock(l)
}

package locktest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	register("F34_ClockJumpsAhead", clockAhead)
	register("F34_ClockJumpsBack", clockBack)
	for name, rate := range map[string]float64{"×1.01": 1.01, "×2": 2, "×0.5": 0.5} {
		register("F34_ClockRuns"+name, func(t *testing.T, d Kind) { clockRuns(t, d, rate) })
	}
}

// wrongClock is one that is ahead and runs at a rate.
type wrongClock struct {
	ahead time.Duration
	rate  float64
}

// clockRig is lockers of different clients on a server whose clock can be moved.
func clockRig(t *testing.T, d Kind, lockers int) (*redistest.Server, []holdfast.Locker) {
	s := redistest.StartWithClock(t)
	ls := make([]holdfast.Locker, lockers)
	for i := range ls {
		ls[i] = d.Open(t, s.Client(t), Options{Lease: 3 * time.Second, Fencing: true})
	}
	return s, ls
}

// A jump ahead ends all leases in Redis: the holder is told at its next renewal,
// those who wait go on to be served, and fences grow.
func clockAhead(t *testing.T, d Kind) {
	s, l := clockRig(t, d, 3)
	ctx := bounded(t)
	first := lock(t, l[0], ctx, "k")
	second, third := lockAside(l[1], ctx, "k"), lockAside(l[2], ctx, "k")
	await(t, func() bool { return d.waiting(t, s, "k") == 2 })
	s.SetClock(time.Minute, 1)
	within(t, first.Done())
	require.ErrorIs(t, first.Err(), holdfast.ErrLost)
	next := within(t, firstOf(second, third))
	require.NoError(t, next.err)
	require.Greater(t, next.lease.Fence(), first.Fence())
	require.NoError(t, next.lease.Unlock(ctx))
	last := within(t, firstOf(second, third))
	require.NoError(t, last.err)
	require.Greater(t, last.lease.Fence(), next.lease.Fence())
	require.NoError(t, last.lease.Unlock(ctx))
}

// firstOf is whatever comes first out of two channels.
func firstOf(a, b <-chan acquired) <-chan acquired {
	one := make(chan acquired, 1)
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
func clockBack(t *testing.T, d Kind) {
	s, l := clockRig(t, d, 2)
	ctx := bounded(t)
	first := lock(t, l[0], ctx, "k")
	second := lockAside(l[1], ctx, "k")
	await(t, func() bool { return d.waiting(t, s, "k") == 1 })
	s.SetClock(-time.Minute, 1)
	renewed(t, first)
	require.NoError(t, first.Unlock(ctx))
	next := got(t, second)
	require.Greater(t, next.Fence(), first.Fence())
	renewed(t, next)
	require.NoError(t, next.Unlock(ctx))
}

// Under a clock that runs wrong, leases that are renewed live on.
func clockRuns(t *testing.T, d Kind, rate float64) {
	s, l := clockRig(t, d, 2)
	ctx := bounded(t)
	s.SetClock(0, rate)
	first := lock(t, l[0], ctx, "k")
	second := lockAside(l[1], ctx, "k")
	await(t, func() bool { return d.waiting(t, s, "k") == 1 })
	renewed(t, first)
	renewed(t, first)
	require.NoError(t, first.Unlock(ctx))
	require.NoError(t, got(t, second).Unlock(ctx))
}

// renewed waits for the next renewal of a lease, which must live until then.
func renewed(t *testing.T, l *holdfast.Lease) {
	t.Helper()
	before := l.Deadline()
	await(t, func() bool { return l.Deadline().After(before) })
	require.NoError(t, l.Err())
}

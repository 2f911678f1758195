package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	register("F34_ClockJumpsAhead", clockAhead).real = true
	register("F34_ClockJumpsBack", clockBack).real = true
	for name, rate := range map[string]float64{"×1.01": 1.01, "×2": 2, "×0.5": 0.5} {
		register("F34_ClockRuns"+name, func(t *testing.T, d Kind) { clockRuns(t, d, rate) }).real = true
	}
}

// wrongClock is one that is ahead and runs at a rate.
type wrongClock struct {
	ahead time.Duration
	rate  float64
}

// onClock is lockers of different clients on a server whose clock can be moved.
func onClock(t *testing.T, d Kind, lockers int, lease time.Duration) (*redistest.Server, []holdfast.Locker) {
	s := redistest.StartWithClock(t)
	ls := make([]holdfast.Locker, lockers)
	for i := range ls {
		ls[i] = d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true})
	}
	return s, ls
}

// A jump ahead ends all leases in Redis: the holder learns of it at its next renewal,
// waiters go on to be served, and fences grow.
func clockAhead(t *testing.T, d Kind) {
	s, l := onClock(t, d, 3, 12*time.Second)
	ctx := Bounded(t)
	first := Lock(t, l[0], ctx, "k")
	second, third := GoLock(l[1], ctx, "k"), GoLock(l[2], ctx, "k")
	Await(t, func() bool { return d.Waiting(t, s, "k") == 2 })
	s.SetClock(time.Minute, 1)
	Within(t, first.Done())
	require.ErrorIs(t, first.Err(), holdfast.ErrLost)
	next := Within(t, firstOf(second, third))
	require.NoError(t, next.Err)
	require.Greater(t, next.Lease.Fence(), first.Fence())
	require.NoError(t, next.Lease.Unlock(ctx))
	last := Within(t, firstOf(second, third))
	require.NoError(t, last.Err)
	require.Greater(t, last.Lease.Fence(), next.Lease.Fence())
	require.NoError(t, last.Lease.Unlock(ctx))
}

// firstOf is whatever comes first out of two channels.
func firstOf(a, b <-chan Acquired) <-chan Acquired {
	one := make(chan Acquired, 1)
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
	s, l := onClock(t, d, 2, 12*time.Second)
	ctx := Bounded(t)
	first := Lock(t, l[0], ctx, "k")
	second := GoLock(l[1], ctx, "k")
	Await(t, func() bool { return d.Waiting(t, s, "k") == 1 })
	s.SetClock(-time.Minute, 1)
	renewed(t, first)
	require.NoError(t, first.Unlock(ctx))
	next := Got(t, second)
	require.Greater(t, next.Fence(), first.Fence())
	renewed(t, next)
	require.NoError(t, next.Unlock(ctx))
}

// Under a clock that runs wrong, leases that are renewed live on.
func clockRuns(t *testing.T, d Kind, rate float64) {
	s, l := onClock(t, d, 2, 9*time.Second) // at twice the rate a renewal may be 1.5 s late
	ctx := Bounded(t)
	s.SetClock(0, rate)
	first := Lock(t, l[0], ctx, "k")
	second := GoLock(l[1], ctx, "k")
	Await(t, func() bool { return d.Waiting(t, s, "k") == 1 })
	renewed(t, first)
	renewed(t, first)
	require.NoError(t, first.Unlock(ctx))
	require.NoError(t, Got(t, second).Unlock(ctx))
}

// renewed waits for the next renewal of a lease, which must live until then.
func renewed(t *testing.T, l *holdfast.Lease) {
	t.Helper()
	before := l.Deadline()
	Await(t, func() bool { return l.Deadline().After(before) })
	require.NoError(t, l.Err())
}

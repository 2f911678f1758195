package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var endCases = []contractCase{
	{"End_IsToldEverywhere", defaults, endTold},
	{"End_BindFollowsItsParent", defaults, endBindParent},
	{"End_DeadlineMovesWithRenewals", Options{Lease: time.Second}, endDeadline},
}

// errMine is an error of the caller's own.
var errMine = errors.New("my own reason")

// Whether asked before or after, by whatever listener.
func endTold(c *contractRig) {
	for _, end := range []struct {
		why error
		by  func(l *holdfast.Lease)
	}{
		{holdfast.ErrReleased, c.unlock},
		{holdfast.ErrLost, func(*holdfast.Lease) {
			_, err := c.locker.ForceUnlock(c.ctx, "k")
			require.NoError(c.t, err)
		}},
		{holdfast.ErrClosed, func(*holdfast.Lease) { require.NoError(c.t, c.locker.Close()) }},
	} {
		l := lock(c.t, c.locker, c.ctx, "k")
		c.lives(l)
		done, bounds := l.Done(), []context.Context{l.Bind(c.ctx), l.Bind(context.Background())}
		require.Equal(c.t, done, l.Done())
		for _, b := range bounds {
			require.NoError(c.t, b.Err())
		}
		end.by(l)
		<-done
		for _, b := range bounds {
			<-b.Done()
			require.ErrorIs(c.t, context.Cause(b), end.why)
		}
		c.ended(l, end.why)
		require.Equal(c.t, done, l.Done())
	}
}

type contextKey struct{}

func endBindParent(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	parent, cancel := context.WithCancelCause(context.WithValue(c.ctx, contextKey{}, "value"))
	bound := l.Bind(parent)
	require.Equal(c.t, "value", bound.Value(contextKey{}))
	deadline, ok := c.ctx.Deadline()
	require.True(c.t, ok)
	seen, ok := bound.Deadline()
	require.True(c.t, ok)
	require.Equal(c.t, deadline, seen)

	cancel(errMine)
	<-bound.Done()
	require.Equal(c.t, errMine, context.Cause(bound))
	_, err := c.locker.TryLock(bound, "k")
	require.ErrorIs(c.t, err, context.Canceled)
	require.ErrorIs(c.t, err, errMine)
	c.lives(l)
	c.unlock(l)
}

func endDeadline(c *contractRig) {
	const lease, margin = time.Second, 12 * time.Millisecond
	before := time.Now()
	l := lock(c.t, c.locker, c.ctx, "k")
	first := l.Deadline()
	require.False(c.t, first.Before(before.Add(lease-margin)), "counts from the start of the attempt")
	require.Contains(c.t, first.String(), " m=", "a monotonic clock reading")
	await(c.t, func() bool { return l.Deadline().After(first) })
	c.lives(l)
	c.unlock(l)
	last := l.Deadline()
	require.Equal(c.t, last, l.Deadline())

	fixed := lock(c.t, c.locker, c.ctx, "k", holdfast.FixedLease(time.Second))
	require.LessOrEqual(c.t, time.Until(fixed.Deadline()), time.Second)
	c.unlock(fixed)
}

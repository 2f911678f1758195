package contract

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

var endCases = []testCase{
	{"End_IsToldEverywhere", defaults, endTold},
	{"End_BindFollowsItsParent", defaults, endBindParent},
	{"End_DeadlineMovesWithRenewals", Options{Lease: 6 * time.Second}, endDeadline},
}

// errMine is an error of the caller's own.
var errMine = errors.New("my own reason")

// Whether they are asked before the end or after, all listeners learn of it.
func endTold(c *harness) {
	for _, end := range []struct {
		why error
		by  func(l *holdfast.Lease)
	}{
		{holdfast.ErrReleased, c.unlock},
		{holdfast.ErrLost, func(*holdfast.Lease) {
			_, err := c.Locker.ForceUnlock(c.ctx, "k")
			require.NoError(c.T, err)
		}},
		{holdfast.ErrClosed, func(*holdfast.Lease) { require.NoError(c.T, c.Locker.Close()) }},
	} {
		l := Lock(c.T, c.Locker, c.ctx, "k")
		c.lives(l)
		done, bounds := l.Done(), []context.Context{l.Bind(c.ctx), l.Bind(context.Background())}
		require.Equal(c.T, done, l.Done())
		for _, b := range bounds {
			require.NoError(c.T, b.Err())
		}
		end.by(l)
		<-done
		for _, b := range bounds {
			<-b.Done()
			require.ErrorIs(c.T, context.Cause(b), end.why)
		}
		c.ended(l, end.why)
		require.EqualError(c.T, context.Cause(l.Bind(c.ctx)), l.Err().Error())
		require.Equal(c.T, done, l.Done())
	}
}

type contextKey struct{}

func endBindParent(c *harness) {
	l := Lock(c.T, c.Locker, c.ctx, "k")
	parent, cancel := context.WithCancelCause(context.WithValue(c.ctx, contextKey{}, "value"))
	bound := l.Bind(parent)
	require.Equal(c.T, "value", bound.Value(contextKey{}))
	deadline, ok := c.ctx.Deadline()
	require.True(c.T, ok)
	seen, ok := bound.Deadline()
	require.True(c.T, ok)
	require.Equal(c.T, deadline, seen)

	cancel(errMine)
	<-bound.Done()
	require.Equal(c.T, errMine, context.Cause(bound))
	_, err := c.Locker.TryLock(bound, "k")
	require.ErrorIs(c.T, err, context.Canceled)
	require.ErrorIs(c.T, err, errMine)
	c.lives(l)
	c.unlock(l)
}

func endDeadline(c *harness) {
	const lease, margin = 6 * time.Second, 62 * time.Millisecond
	before := time.Now()
	l := Lock(c.T, c.Locker, c.ctx, "k")
	first := l.Deadline()
	require.False(c.T, first.Before(before.Add(lease-margin)), "counts from the start of the attempt")
	if strings.Contains(before.String(), " m=") { // in a bubble no time has one
		require.Contains(c.T, first.String(), " m=", "a monotonic clock reading")
	}
	Await(c.T, func() bool { return l.Deadline().After(first) })
	c.lives(l)
	c.unlock(l)
	last := l.Deadline()
	require.Equal(c.T, last, l.Deadline())

	fixed := Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(time.Minute))
	require.LessOrEqual(c.T, time.Until(fixed.Deadline()), time.Minute)
	c.unlock(fixed)
}

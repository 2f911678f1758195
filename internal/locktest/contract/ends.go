package contract

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

var endCases = []testCase{
	{"End_IsToldEverywhere", defaults, endTold},
	{"Bind_KeepsWhatTheParentSays", defaults, bindParents},
	{"End_DeadlineMovesWithRenewals", locktest.Options{Lease: 6 * time.Second}, endDeadline},
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
			c.force(c.Locker, "k")
		}},
		{holdfast.ErrClosed, func(*holdfast.Lease) { require.NoError(c.T, c.Locker.Close()) }},
	} {
		l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
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

func endDeadline(c *harness) {
	const lease, margin = 6 * time.Second, 62 * time.Millisecond
	before := time.Now()
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	first := l.Deadline()
	require.False(c.T, first.Before(before.Add(lease-margin)), "counts from the start of the attempt")
	if strings.Contains(before.String(), " m=") { // in a bubble no time has one
		require.Contains(c.T, first.String(), " m=", "a monotonic clock reading")
	}
	locktest.Await(c.T, func() bool { return l.Deadline().After(first) })
	c.lives(l)
	c.unlock(l)
	last := l.Deadline()
	require.Equal(c.T, last, l.Deadline())

	fixed := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(time.Minute))
	require.LessOrEqual(c.T, time.Until(fixed.Deadline()), time.Minute)
	c.unlock(fixed)
}

type valueKey struct{}

// Contexts that are bound to one lease share what ends them, and nothing else.
func bindParents(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	with := func(parent context.Context, v int) context.Context {
		return context.WithValue(parent, valueKey{}, v)
	}
	errTold := errMine
	told, tell := context.WithCancelCause(context.Background())
	late, stop := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer stop()
	soon, stop := context.WithTimeout(context.Background(), time.Hour)
	defer stop()
	parents := []context.Context{
		context.Background(), with(context.Background(), 1), with(context.Background(), 2),
		told, with(told, 3), with(with(told, 4), 5), soon, with(soon, 6),
	}
	var all, children []context.Context
	for _, parent := range parents {
		bound := l.Bind(parent)
		require.NoError(c.T, bound.Err())
		require.Equal(c.T, parent.Value(valueKey{}), bound.Value(valueKey{}))
		want, has := parent.Deadline()
		got, bounded := bound.Deadline()
		require.Equal(c.T, []any{want, has}, []any{got, bounded})
		child, stop := context.WithCancel(bound)
		defer stop()
		all, children = append(all, bound), append(children, child)
		c.unlock(locktest.Lock(c.T, c.Locker, child, "k"))
	}
	require.Equal(c.T, context.DeadlineExceeded, l.Bind(late).Err())

	tell(errTold)
	for i, bound := range all {
		if i < 3 || i > 5 {
			require.NoError(c.T, bound.Err())
			require.NoError(c.T, children[i].Err())
			continue
		}
		for _, ctx := range []context.Context{bound, children[i], l.Bind(parents[i])} {
			locktest.Within(c.T, ctx.Done())
			require.Equal(c.T, context.Canceled, ctx.Err())
			require.Equal(c.T, errTold, context.Cause(ctx))
		}
	}
	c.unlock(l)
	for i, bound := range all {
		if i >= 3 && i <= 5 {
			continue
		}
		for _, ctx := range []context.Context{bound, children[i], l.Bind(parents[i])} {
			locktest.Within(c.T, ctx.Done())
			require.Equal(c.T, context.Canceled, ctx.Err())
			require.ErrorIs(c.T, context.Cause(ctx), holdfast.ErrReleased)
		}
	}
}

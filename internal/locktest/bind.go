package locktest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var bindCases = []contractCase{
	{"Bind_KeepsWhatTheParentSays", defaults, bindParents},
}

type valueKey struct{}

// Contexts that are bound to one lease share what ends them, and nothing else.
func bindParents(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
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
		require.NoError(c.t, bound.Err())
		require.Equal(c.t, parent.Value(valueKey{}), bound.Value(valueKey{}))
		want, has := parent.Deadline()
		got, bounded := bound.Deadline()
		require.Equal(c.t, []any{want, has}, []any{got, bounded})
		child, stop := context.WithCancel(bound)
		defer stop()
		all, children = append(all, bound), append(children, child)
		c.unlock(lock(c.t, c.locker, child, "k"))
	}
	require.Equal(c.t, context.DeadlineExceeded, l.Bind(late).Err())

	tell(errTold)
	for i, bound := range all {
		if i < 3 || i > 5 {
			require.NoError(c.t, bound.Err())
			require.NoError(c.t, children[i].Err())
			continue
		}
		for _, ctx := range []context.Context{bound, children[i], l.Bind(parents[i])} {
			within(c.t, ctx.Done())
			require.Equal(c.t, context.Canceled, ctx.Err())
			require.Equal(c.t, errTold, context.Cause(ctx))
		}
	}
	c.unlock(l)
	for i, bound := range all {
		if i >= 3 && i <= 5 {
			continue
		}
		for _, ctx := range []context.Context{bound, children[i], l.Bind(parents[i])} {
			within(c.t, ctx.Done())
			require.Equal(c.t, context.Canceled, ctx.Err())
			require.ErrorIs(c.t, context.Cause(ctx), holdfast.ErrReleased)
		}
	}
}

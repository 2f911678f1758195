package contract

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

var bindCases = []testCase{
	{"Bind_KeepsWhatTheParentSays", defaults, bindParents},
}

type valueKey struct{}

// Contexts that are bound to one lease share what ends them, and nothing else.
func bindParents(c *harness) {
	l := Lock(c.T, c.Locker, c.ctx, "k")
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
		c.unlock(Lock(c.T, c.Locker, child, "k"))
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
			Within(c.T, ctx.Done())
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
			Within(c.T, ctx.Done())
			require.Equal(c.T, context.Canceled, ctx.Err())
			require.ErrorIs(c.T, context.Cause(ctx), holdfast.ErrReleased)
		}
	}
}

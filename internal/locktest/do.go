package locktest

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/hall"
)

var doCases = []contractCase{
	{"Do_RunsUnderTheLockAndUnlocks", defaults, doRuns},
	{"Do_UnlocksOnPanicAndGoexit", defaults, doPanics},
	{"Do_JoinsALossToTheError", defaults, doLoses},
	{"Do_RefusesANilFunction", defaults, doNil},
	{"Do_DoesNotRunWithoutTheLock", defaults, doNotAcquired},
	{"Do_UnlocksWhenTheContextIsOver", defaults, doCancelled},
}

// unreachable is a function that must not be run.
func unreachable(t testing.TB) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the function was run")
		return nil
	}
}

func doRuns(c *contractRig) {
	for _, result := range []error{nil, errMine} {
		var bound context.Context
		err := c.locker.Do(c.ctx, "k", func(ctx context.Context) error {
			bound = ctx
			require.Equal(c.t, 1, c.entries("k"))
			require.NoError(c.t, ctx.Err())
			return result
		})
		require.Equal(c.t, result, err)
		c.free("k")
		<-bound.Done()
		require.ErrorIs(c.t, context.Cause(bound), hall.ErrReleased)
	}
}

func doPanics(c *contractRig) {
	require.PanicsWithValue(c.t, errMine, func() {
		_ = c.locker.Do(c.ctx, "k", func(context.Context) error { panic(errMine) })
	})
	c.free("k")

	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = c.locker.Do(c.ctx, "k", func(context.Context) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-gone
	c.free("k")
}

func doLoses(c *contractRig) {
	for _, result := range []error{nil, errMine} {
		err := c.locker.Do(c.ctx, "k", func(ctx context.Context) error {
			_, err := c.locker.ForceUnlock(c.ctx, "k")
			require.NoError(c.t, err)
			<-ctx.Done()
			require.ErrorIs(c.t, context.Cause(ctx), hall.ErrLost)
			return result
		})
		require.ErrorIs(c.t, err, hall.ErrLost)
		if result != nil {
			require.ErrorIs(c.t, err, result)
		}
	}
}

func doNil(c *contractRig) {
	require.ErrorContains(c.t, c.locker.Do(c.ctx, "k", nil), "function is nil")
	c.quiet()
}

func doNotAcquired(c *contractRig) {
	l := lock(c.t, c.other, c.ctx, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan error, 1)
	go func() { done <- c.locker.Do(ctx, "k", unreachable(c.t)) }()
	c.awaitWaiters("k", 1)
	cancel()
	err := <-done
	require.ErrorIs(c.t, err, hall.ErrNotAcquired)
	require.ErrorIs(c.t, err, context.Canceled)
	c.unlock(l)
	c.tidy("k")
}

func doCancelled(c *contractRig) {
	ctx, cancel := context.WithCancel(c.ctx)
	err := c.locker.Do(ctx, "k", func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.Equal(c.t, context.Canceled, err)
	c.free("k")
}

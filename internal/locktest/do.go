package locktest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var doCases = []contractCase{
	{"Do_RunsUnderTheLockAndUnlocks", defaults, doRuns},
	{"Do_UnlocksOnPanicAndGoexit", defaults, doPanics},
	{"Do_WaitsAtMost", defaults, doWaitsAtMost},
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
			require.Equal(c.t, "k", holdfast.LeaseFrom(ctx).Key())
			return result
		})
		require.Equal(c.t, result, err)
		c.free("k")
		<-bound.Done()
		require.ErrorIs(c.t, context.Cause(bound), holdfast.ErrReleased)
	}
}

// WaitAtMost bounds the wait and leaves the function its time.
func doWaitsAtMost(c *contractRig) {
	require.Nil(c.t, holdfast.LeaseFrom(c.ctx))
	for _, wait := range []time.Duration{0, time.Second} {
		held := lock(c.t, c.other, c.ctx, "k")
		began := time.Now()
		err := c.locker.Do(c.ctx, "k", unreachable(c.t), holdfast.WaitAtMost(wait))
		require.ErrorIs(c.t, err, holdfast.ErrNotAcquired)
		require.NotErrorIs(c.t, err, context.DeadlineExceeded)
		require.GreaterOrEqual(c.t, time.Since(began), wait)
		c.unlock(held)
		before, _ := c.ctx.Deadline()
		require.NoError(c.t, c.locker.Do(c.ctx, "k", func(ctx context.Context) error {
			after, _ := ctx.Deadline()
			require.Equal(c.t, before, after)
			return c.locker.Do(ctx, "k", func(context.Context) error { return nil }, holdfast.WaitAtMost(wait))
		}, holdfast.WaitAtMost(wait)))
	}
	_, err := c.locker.Lock(c.ctx, "k", holdfast.WaitAtMost(-1))
	require.ErrorContains(c.t, err, "WaitAtMost: -1ns is negative")
	_, err = c.locker.TryLock(c.ctx, "k", holdfast.WaitAtMost(0))
	require.ErrorContains(c.t, err, "WaitAtMost is for Do and Lock")
	_, err = c.locker.TryLockFor(c.ctx, "k", 0, holdfast.WaitAtMost(0))
	require.ErrorContains(c.t, err, "WaitAtMost is for Do and Lock")
	c.free("k")
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
			require.ErrorIs(c.t, context.Cause(ctx), holdfast.ErrLost)
			return result
		})
		require.ErrorIs(c.t, err, holdfast.ErrLost)
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
	require.ErrorIs(c.t, err, holdfast.ErrNotAcquired)
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

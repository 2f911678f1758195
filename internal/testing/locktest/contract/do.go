package contract

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

var doCases = []testCase{
	{"Do_RunsUnderTheLockAndUnlocks", anywhere, defaults, doRuns},
	{"Do_UnlocksOnPanicAndGoexit", anywhere, defaults, doPanics},
	{"Do_WaitsAtMost", ofOneHolder, defaults, doWaitsAtMost},
	{"Do_JoinsALossToTheError", anywhere, defaults, doLoses},
	{"Do_DoesNotRunWithoutTheLock", ofOneHolder, defaults, doNotAcquired},
	{"Do_UnlocksWhenTheContextIsOver", anywhere, defaults, doCancelled},
	{"Do_IsDoneWithoutAnAnswerToTheRelease", servers, defaults, doReleaseUnanswered},
	{"Do_IsDoneThoughTheReleaseOutlastsTheLease", servers, defaults, doReleaseLate},
}

// unreachable is a function that must not be run.
func unreachable(t testing.TB) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the function was run")
		return nil
	}
}

func doRuns(c *harness) {
	for _, result := range []error{nil, errMine} {
		var bound context.Context
		err := c.Locker.Do(c.ctx, "k", func(ctx context.Context) error {
			bound = ctx
			require.Equal(c.T, 1, c.Entries("k"))
			require.NoError(c.T, ctx.Err())
			require.Equal(c.T, "k", holdfast.LeaseFrom(ctx).Key())
			return result
		})
		require.Equal(c.T, result, err)
		c.free("k")
		<-bound.Done()
		require.ErrorIs(c.T, context.Cause(bound), holdfast.ErrReleased)
	}
}

// WaitAtMost bounds the wait and leaves the function its time.
func doWaitsAtMost(c *harness) {
	require.Nil(c.T, holdfast.LeaseFrom(c.ctx))
	for _, wait := range []time.Duration{0, c.Kind.Limit()} {
		held := locktest.Lock(c.T, c.Other, c.ctx, "k")
		began := time.Now()
		err := c.Locker.Do(c.ctx, "k", unreachable(c.T), holdfast.WaitAtMost(wait))
		require.ErrorIs(c.T, err, holdfast.ErrNotAcquired)
		require.NotErrorIs(c.T, err, context.DeadlineExceeded)
		require.GreaterOrEqual(c.T, time.Since(began), wait)
		c.unlock(held)
		before, _ := c.ctx.Deadline()
		require.NoError(c.T, c.Locker.Do(c.ctx, "k", func(ctx context.Context) error {
			after, _ := ctx.Deadline()
			require.Equal(c.T, before, after)
			return c.Locker.Do(ctx, "k", func(context.Context) error { return nil }, holdfast.WaitAtMost(wait))
		}, holdfast.WaitAtMost(wait)))
	}
	c.free("k")
}

func doPanics(c *harness) {
	require.PanicsWithValue(c.T, errMine, func() {
		_ = c.Locker.Do(c.ctx, "k", func(context.Context) error { panic(errMine) })
	})
	c.free("k")

	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = c.Locker.Do(c.ctx, "k", func(context.Context) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-gone
	c.free("k")
}

func doLoses(c *harness) {
	for _, result := range []error{nil, errMine} {
		err := c.Locker.Do(c.ctx, "k", func(ctx context.Context) error {
			c.force(c.Locker, "k")
			<-ctx.Done()
			require.ErrorIs(c.T, context.Cause(ctx), holdfast.ErrLost)
			return result
		})
		require.ErrorIs(c.T, err, holdfast.ErrLost)
		if result != nil {
			require.ErrorIs(c.T, err, result)
		}
	}
}

func doNotAcquired(c *harness) {
	l := locktest.Lock(c.T, c.Other, c.ctx, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	done := locktest.Go(func() error { return c.Locker.Do(ctx, "k", unreachable(c.T)) })
	c.AwaitWaiters("k", 1)
	cancel()
	err := <-done
	require.ErrorIs(c.T, err, holdfast.ErrNotAcquired)
	require.ErrorIs(c.T, err, context.Canceled)
	c.unlock(l)
	c.Tidy("k")
}

func doCancelled(c *harness) {
	ctx, cancel := context.WithCancel(c.ctx)
	err := c.Locker.Do(ctx, "k", func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.Equal(c.T, context.Canceled, err)
	c.free("k")
}

// The work was done under live leases. That Redis hangs at the end is told by log and observer,
// and is no error of Do, which callers take for work that was not done.
func doReleaseUnanswered(c *harness) {
	for _, result := range []error{nil, errMine} {
		var logs redistest.Log
		s := c.observed(locktest.Options{Lease: 30 * time.Second, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
		ctx, cancel := context.WithCancel(c.ctx)
		err := c.Locker.Do(ctx, "k", func(bound context.Context) error {
			return c.Locker.Do(bound, "k", func(context.Context) error {
				c.Proxy.HoldRequests(true)
				cancel()
				return result
			})
		})
		require.Equal(c.T, result, err)
		for _, e := range await[holdfast.ReleasedEvent](c, s, 2) {
			require.ErrorIs(c.T, e.Err, holdfast.ErrUnknown)
		}
		require.Contains(c.T, logs.String(), `level=WARN msg="holdfast: release failed; the key frees itself within its lease" key="\"k\"" error=`)
		c.Proxy.HoldRequests(false)
		locktest.Await(c.T, func() bool { status, err := c.Other.Inspect(c.ctx, "k"); return err == nil && !status.Held })
		require.NoError(c.T, c.Locker.Close())
	}
}

// The lease lived when the work was done. That its key has expired when the release arrives is no loss.
func doReleaseLate(c *harness) {
	err := c.Locker.Do(c.ctx, "k", func(ctx context.Context) error {
		c.away()
		time.Sleep(200 * time.Millisecond) // the connections are known to be lost, so that no attempt is in doubt
		l := holdfast.LeaseFrom(ctx)
		time.AfterFunc(time.Until(l.Deadline())+100*time.Millisecond, c.back)
		return l.Err()
	}, holdfast.FixedLease(20*time.Second))
	require.NoError(c.T, err)
	c.free("k")
}

package contract

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

var cancelCases = []testCase{
	{"Cancel_BeforeTheCallSendsNothing", anywhere, defaults, cancelBefore},
	{"Cancel_JoinsTheContextsErrorAndCause", ofOneHolder, defaults, cancelJoined},
	{"Cancel_InAnOutageTellsWhatIsKnown", ownRedis, defaults, cancelOutage},
	{"Cancel_LeavesTheNextItsOwnTerms", servers | ofOneHolder, defaults, cancelTerms},
}

func cancelBefore(c *harness) {
	over, cancel := context.WithCancelCause(c.ctx)
	cancel(errMine)
	late, stop := context.WithDeadline(c.ctx, time.Now())
	defer stop()
	for ctx, want := range map[context.Context][]error{over: {context.Canceled, errMine}, late: {context.DeadlineExceeded}} {
		for name, call := range c.everyCall(ctx, "k") {
			err := call()
			for _, e := range want {
				require.ErrorIs(c.T, err, e, name)
			}
			locktest.RequireSentinel(c.T, err, nil)
		}
	}
	c.quiet()
}

// The error of a cancelled call has the context's as well, whichever locker has the key, and at any
// stage of the wait.
func cancelJoined(c *harness) {
	locktest.Lock(c.T, c.Locker, c.ctx, "mine")
	locktest.Lock(c.T, c.Other, c.ctx, "theirs")
	for _, key := range []string{"mine", "theirs"} {
		ctx, cancel := context.WithCancelCause(c.ctx)
		waits := []<-chan locktest.Acquired{locktest.GoLock(c.Locker, ctx, key), c.queueWith(ctx, c.Locker, key)}
		limited := locktest.GoAcquire(func() (*holdfast.Lease, error) { return c.Locker.TryLockFor(ctx, key, time.Hour) })
		if key == "theirs" {
			c.AwaitWaiters(key, 1)
		}
		cancel(errMine)
		for _, w := range append(waits, limited) {
			a := <-w
			require.Nil(c.T, a.Lease)
			require.ErrorIs(c.T, a.Err, context.Canceled)
			require.ErrorIs(c.T, a.Err, errMine)
		}
		c.Traceless("theirs")

		ctx, stop := context.WithTimeout(c.ctx, c.Kind.Limit())
		defer stop()
		_, err := c.Locker.Lock(ctx, key)
		require.ErrorIs(c.T, err, holdfast.ErrNotAcquired)
		require.ErrorIs(c.T, err, context.DeadlineExceeded)
	}
}

func cancelOutage(c *harness) {
	c.away()
	defer c.back()
	_, err := c.Locker.TryLockFor(c.ctx, "k", c.Kind.Limit())
	require.ErrorIs(c.T, err, holdfast.ErrUnavailable)
	require.NotErrorIs(c.T, err, context.DeadlineExceeded)

	ctx, cancel := context.WithTimeoutCause(c.ctx, c.Kind.Limit(), errMine)
	defer cancel()
	_, err = c.Locker.Lock(ctx, "k")
	require.ErrorIs(c.T, err, context.DeadlineExceeded)
	require.ErrorIs(c.T, err, errMine)
	require.True(c.T, errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrUnknown), "%v", err)
	require.NotErrorIs(c.T, err, holdfast.ErrNotAcquired)
}

// The terms of a caller that has gone do not matter to the next.
func cancelTerms(c *harness) {
	holder := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.MaxHold(time.Hour))
	ctx, cancel := context.WithCancel(c.ctx)
	going := c.queueWith(ctx, c.Locker, "k")
	next := c.queue(c.Locker, "k", holdfast.FixedLease(time.Hour))
	held, letGo := c.hold(c.Proxy.OnReply, c.Kind.GrantVerb())
	released := locktest.Go(func() error { return holder.Unlock(c.ctx) })
	locktest.Within(c.T, held)
	cancel()
	require.ErrorIs(c.T, (<-going).Err, context.Canceled)
	letGo()
	require.NoError(c.T, <-released)
	l := locktest.Got(c.T, next)
	require.Greater(c.T, time.Until(l.Deadline()), 30*time.Minute)
	require.Equal(c.T, l.Owner(), c.Owner("k"))
	c.unlock(l)
	c.Tidy("k")
}

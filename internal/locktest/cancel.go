package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var cancelCases = []contractCase{
	{"Cancel_BeforeTheCallSendsNothing", defaults, cancelBefore},
	{"Cancel_JoinsTheContextsErrorAndCause", defaults, cancelJoined},
	{"Cancel_LeavesNothing", defaults, cancelTidy},
	{"Cancel_InAnOutageTellsWhatIsKnown", defaults, cancelOutage},
	{"Cancel_LeavesTheNextItsOwnTerms", defaults, cancelTerms},
	{"Cancel_OfOneWaiterLeavesTheOthers", defaults, cancelOne},
}

// isOurs tells whether err is one of ours.
func isOurs(err error) bool {
	for _, e := range []error{
		holdfast.ErrNotAcquired, holdfast.ErrLost, holdfast.ErrReleased, holdfast.ErrClosed,
		holdfast.ErrQueueFull, holdfast.ErrUnavailable, holdfast.ErrUnknown,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func cancelBefore(c *contractRig) {
	over, cancel := context.WithCancelCause(c.ctx)
	cancel(errMine)
	late, stop := context.WithDeadline(c.ctx, time.Now())
	defer stop()
	for ctx, want := range map[context.Context][]error{over: {context.Canceled, errMine}, late: {context.DeadlineExceeded}} {
		for name, call := range map[string]func() error{
			"Lock":        func() error { _, err := c.locker.Lock(ctx, "k"); return err },
			"TryLock":     func() error { _, err := c.locker.TryLock(ctx, "k"); return err },
			"TryLockFor":  func() error { _, err := c.locker.TryLockFor(ctx, "k", time.Hour); return err },
			"Do":          func() error { return c.locker.Do(ctx, "k", unreachable(c.t)) },
			"Inspect":     func() error { _, err := c.locker.Inspect(ctx, "k"); return err },
			"ForceUnlock": func() error { _, err := c.locker.ForceUnlock(ctx, "k"); return err },
		} {
			err := call()
			for _, e := range want {
				require.ErrorIs(c.t, err, e, name)
			}
			require.False(c.t, isOurs(err), name)
		}
	}
	c.quiet()
}

// Whoever has the key, and whatever the wait is at.
func cancelJoined(c *contractRig) {
	lock(c.t, c.locker, c.ctx, "mine")
	lock(c.t, c.other, c.ctx, "theirs")
	for _, key := range []string{"mine", "theirs"} {
		ctx, cancel := context.WithCancelCause(c.ctx)
		waits := []<-chan acquired{lockAside(c.locker, ctx, key), c.queueWith(ctx, c.locker, key)}
		limited := make(chan acquired, 1)
		go func() {
			l, err := c.locker.TryLockFor(ctx, key, time.Hour)
			limited <- acquired{l, err}
		}()
		if key == "theirs" {
			c.awaitWaiters(key, 1)
		}
		cancel(errMine)
		for _, w := range append(waits, limited) {
			a := <-w
			require.Nil(c.t, a.lease)
			require.ErrorIs(c.t, a.err, context.Canceled)
			require.ErrorIs(c.t, a.err, errMine)
		}
		c.traceless("theirs")

		ctx, stop := context.WithTimeout(c.ctx, time.Second)
		defer stop()
		_, err := c.locker.Lock(ctx, key)
		require.ErrorIs(c.t, err, holdfast.ErrNotAcquired)
		require.ErrorIs(c.t, err, context.DeadlineExceeded)
	}
}

func cancelTidy(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	waits := []<-chan acquired{lockAside(c.locker, ctx, "k"), c.queueWith(ctx, c.locker, "k")}
	c.awaitWaiters("k", 1)
	cancel()
	for _, w := range waits {
		require.ErrorIs(c.t, (<-w).err, context.Canceled)
	}
	c.traceless("k")
	c.unlock(their)
	c.tidy("k")
}

func cancelOutage(c *contractRig) {
	c.away()
	defer c.proxy.Refuse(false)
	_, err := c.locker.TryLockFor(c.ctx, "k", time.Second)
	require.ErrorIs(c.t, err, holdfast.ErrUnavailable)
	require.NotErrorIs(c.t, err, context.DeadlineExceeded)

	ctx, cancel := context.WithTimeoutCause(c.ctx, time.Second, errMine)
	defer cancel()
	_, err = c.locker.Lock(ctx, "k")
	require.ErrorIs(c.t, err, context.DeadlineExceeded)
	require.ErrorIs(c.t, err, errMine)
	require.True(c.t, errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrUnknown), "%v", err)
	require.NotErrorIs(c.t, err, holdfast.ErrNotAcquired)
}

// What was asked for by one who has gone is not what the next wants.
func cancelTerms(c *contractRig) {
	holder := lock(c.t, c.locker, c.ctx, "k", holdfast.MaxHold(time.Hour))
	ctx, cancel := context.WithCancel(c.ctx)
	going := c.queueWith(ctx, c.locker, "k")
	next := c.queue(c.locker, "k", holdfast.FixedLease(time.Hour))
	hook, held := holding(c.kind.grantVerb())
	c.proxy.OnReply(hook)
	released := make(chan error, 1)
	go func() { released <- holder.Unlock(c.ctx) }()
	within(c.t, held)
	cancel()
	require.ErrorIs(c.t, (<-going).err, context.Canceled)
	c.proxy.OnReply(nil)
	c.proxy.Release()
	require.NoError(c.t, <-released)
	l := got(c.t, next)
	require.Greater(c.t, time.Until(l.Deadline()), 30*time.Minute)
	require.Equal(c.t, l.Owner(), c.owner("k"))
	c.unlock(l)
	c.tidy("k")
}

// The head of the queue may go, and those in the middle, at the moment of the
// release too: the next gets the key.
func cancelOne(c *contractRig) {
	for i := range 20 {
		their := lock(c.t, c.other, c.ctx, "k")
		ctx, cancel := context.WithCancel(c.ctx)
		going := []<-chan acquired{lockAside(c.locker, ctx, "k")}
		c.awaitWaiters("k", 1)
		going = append(going, c.queueWith(ctx, c.locker, "k"))
		staying := c.queue(c.locker, "k")
		released := make(chan error, 1)
		if i%2 == 0 {
			cancel()
		}
		go func() { released <- their.Unlock(c.ctx) }()
		cancel()
		for _, w := range going {
			if a := <-w; a.err == nil {
				c.unlock(a.lease)
			}
		}
		require.NoError(c.t, <-released)
		c.unlock(got(c.t, staying))
		c.awaitWaiters("k", 0)
	}
	c.tidy("k")
}

package locktest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var unlockCases = []contractCase{
	{"Unlock_WorksOnAContextThatIsOver", defaults, unlockOver},
	{"Unlock_SecondTimeIsErrReleased", defaults, unlockTwice},
	{"Unlock_ByManyAtOnce", defaults, unlockMany},
	{"Unlock_LostOnceThenReleased", defaults, unlockLost},
	{"Unlock_FindsTheLossItself", defaults, unlockFindsLoss},
	{"Unlock_OfALeaseThatRanOutReleasesNothing", defaults, unlockExpired},
	{"Unlock_UnknownWithTheContext", defaults, unlockUnknown},
	{"Unlock_GoesOnUntilTheDeadline", Options{Lease: time.Second}, unlockNoAnswer},
	{"Unlock_IsOneRoundTrip", defaults, unlockRoundTrips},
}

func unlockOver(c *contractRig) {
	over, cancel := context.WithCancel(c.ctx)
	cancel()
	outer := lock(c.t, c.locker, c.ctx, "k")
	inner := lock(c.t, c.locker, outer.Bind(c.ctx), "k")
	require.NoError(c.t, inner.Unlock(over))
	require.Equal(c.t, 1, c.entries("k"))
	require.NoError(c.t, outer.Unlock(over))
	c.free("k")
}

func unlockTwice(c *contractRig) {
	outer := lock(c.t, c.locker, c.ctx, "k")
	inner := lock(c.t, c.locker, outer.Bind(c.ctx), "k")
	for _, l := range []*holdfast.Lease{inner, outer} {
		c.unlock(l)
		c.commands()
		requireSentinel(c.t, l.Unlock(c.ctx), holdfast.ErrReleased)
		c.quiet()
	}
	// Nor does it hit the next lease.
	next := lock(c.t, c.locker, c.ctx, "k")
	require.ErrorIs(c.t, outer.Unlock(c.ctx), holdfast.ErrReleased)
	c.held(c.other, "k")
	c.unlock(next)
}

// One of them has ended it.
func unlockMany(c *contractRig) {
	outer := lock(c.t, c.locker, c.ctx, "k")
	inner := lock(c.t, c.locker, outer.Bind(c.ctx), "k")
	for _, l := range []*holdfast.Lease{inner, outer} {
		ends := make(chan error, 8)
		for range cap(ends) {
			go func() { ends <- l.Unlock(c.ctx) }()
		}
		ok := 0
		for range cap(ends) {
			if err := <-ends; err == nil {
				ok++
			} else {
				requireSentinel(c.t, err, holdfast.ErrReleased)
			}
		}
		require.Equal(c.t, 1, ok)
	}
	c.free("k")
}

// Each entry tells the loss once.
func unlockLost(c *contractRig) {
	outer := lock(c.t, c.locker, c.ctx, "k")
	inner := lock(c.t, c.locker, outer.Bind(c.ctx), "k")
	_, err := c.locker.ForceUnlock(c.ctx, "k")
	require.NoError(c.t, err)
	for _, l := range []*holdfast.Lease{outer, inner} {
		require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
		requireSentinel(c.t, l.Unlock(c.ctx), holdfast.ErrReleased)
		require.ErrorIs(c.t, l.Err(), holdfast.ErrLost)
	}
}

// Redis tells it before any renewal does. The key may be another's by then.
func unlockFindsLoss(c *contractRig) {
	for _, nested := range []bool{false, true} {
		outer := lock(c.t, c.locker, c.ctx, "k")
		l := outer
		if nested {
			l = lock(c.t, c.locker, outer.Bind(c.ctx), "k")
		}
		c.server.Do(c.t, "DEL", "k")
		their := lock(c.t, c.other, c.ctx, "k")
		require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
		if nested {
			c.ended(outer, holdfast.ErrLost)
		}
		c.held(c.locker, "k")
		c.unlock(their)
	}
}

// Also at the very moment, when nobody has been told yet.
func unlockExpired(c *contractRig) {
	for range 5 {
		l := lock(c.t, c.locker, c.ctx, "k", holdfast.FixedLease(100*time.Millisecond))
		for time.Now().Before(l.Deadline()) {
			runtime.Gosched()
		}
		require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
		if c.kind.Nodes == 0 { // a quorum releases what may outlive it on a node whose clock is slow
			require.NotContains(c.t, c.noted(), "release")
		}
		requireSentinel(c.t, l.Unlock(c.ctx), holdfast.ErrReleased)
	}
}

// The entry has ended whatever Unlock returns, and the release goes on.
func unlockUnknown(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	hook, held := holding("release")
	c.proxy.each(func(p *redistest.Proxy) {
		swallowed := p.SwallowReply(1, is("release"))
		p.OnReply(func(cmd []string) redistest.Verdict {
			select {
			case <-swallowed: // the second answer and what follows
				return hook(cmd)
			default:
				return redistest.Pass
			}
		})
	})
	ctx, cancel := context.WithCancelCause(c.ctx)
	done := make(chan error, 1)
	go func() { done <- l.Unlock(ctx) }()
	within(c.t, held)
	c.ended(l, holdfast.ErrReleased)
	cancel(errMine)
	err := <-done
	for _, e := range []error{holdfast.ErrUnknown, context.Canceled, errMine} {
		require.ErrorIs(c.t, err, e)
	}
	requireSentinel(c.t, l.Unlock(c.ctx), holdfast.ErrReleased)
	c.free("k")
	c.proxy.OnReply(nil)
	c.proxy.Release()
}

func unlockNoAnswer(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	c.proxy.HoldRequests(true)
	err := l.Unlock(c.ctx)
	require.ErrorIs(c.t, err, holdfast.ErrUnknown)
	ownTime(c.t, err)
	c.ended(l, holdfast.ErrReleased)
	unanswered := holdfast.ErrUnknown
	if c.kind.Nodes > 0 {
		unanswered = holdfast.ErrUnavailable // by now it is known to be away, and not asked
	}
	_, err = c.locker.TryLock(c.ctx, "k")
	require.ErrorIs(c.t, err, unanswered)
	ownTime(c.t, err)
	_, err = c.locker.Inspect(c.ctx, "k")
	require.ErrorIs(c.t, err, holdfast.ErrUnknown)
	ownTime(c.t, err)
	c.proxy.HoldRequests(false)
	c.unlock(lock(c.t, c.locker, c.ctx, "k"))
}

// ownTime requires that an error does not show the time that a call has: the
// caller's context is not over.
func ownTime(t testing.TB, err error) {
	t.Helper()
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, context.Canceled)
}

func unlockRoundTrips(c *contractRig) {
	c.unlock(lock(c.t, c.locker, c.ctx, "k"))
	require.Equal(c.t, []string{"acquire", "release"}, c.commands())
	l := lock(c.t, c.locker, c.ctx, "k")
	c.unlock(lock(c.t, c.locker, l.Bind(c.ctx), "k"))
	c.unlock(l)
	require.Equal(c.t, []string{"acquire", "recount", "recount", "release"}, c.commands())
}

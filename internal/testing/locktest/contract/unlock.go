package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

var unlockCases = []testCase{
	{"Unlock_WorksOnAContextThatIsOver", anywhere, defaults, unlockOver},
	{"Unlock_ByManyAtOnce", anywhere, defaults, unlockMany},
	{"Unlock_LostOnceThenReleased", anywhere, defaults, unlockLost},
	{"Unlock_FindsTheLossItself", servers | ofOneHolder, defaults, unlockFindsLoss},
	{"Unlock_OfALeaseThatRanOutReleasesNothing", anywhere, defaults, unlockExpired},
	{"Unlock_UnknownWithTheContext", servers, defaults, unlockUnknown},
	{"Unlock_GoesOnUntilTheDeadline", servers, locktest.Options{Lease: 20 * time.Second}, unlockNoAnswer},
}

func unlockOver(c *harness) {
	over := locktest.Over(c.ctx)
	outer := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	inner := locktest.Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
	require.NoError(c.T, inner.Unlock(over))
	require.Equal(c.T, 1, c.Entries("k"))
	require.NoError(c.T, outer.Unlock(over))
	c.free("k")
}

// Of concurrent calls of Unlock, one ends the entry. The others send nothing. Nor does a late one hit the next lease.
func unlockMany(c *harness) {
	outer := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	inner := locktest.Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
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
				locktest.RequireSentinel(c.T, err, holdfast.ErrReleased)
			}
		}
		require.Equal(c.T, 1, ok)
	}
	c.sends("acquire", "set_entries", "set_entries", "release")
	c.free("k")
	next := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	locktest.RequireSentinel(c.T, outer.Unlock(c.ctx), holdfast.ErrReleased)
	c.unlock(next)
}

// Each entry reports the loss once.
func unlockLost(c *harness) {
	outer := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	inner := locktest.Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
	c.force(c.Locker, "k")
	for _, l := range []*holdfast.Lease{outer, inner} {
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
		locktest.RequireSentinel(c.T, l.Unlock(c.ctx), holdfast.ErrReleased)
		require.ErrorIs(c.T, l.Err(), holdfast.ErrLost)
	}
}

// Unlock reports a loss that no renewal has found yet. The key may be another's by then.
func unlockFindsLoss(c *harness) {
	for _, nested := range []bool{false, true} {
		outer := locktest.Lock(c.T, c.Locker, c.ctx, "k")
		l := outer
		if nested {
			l = locktest.Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
		}
		c.Server.Do(c.T, "DEL", c.Name("k"))
		their := locktest.Lock(c.T, c.Other, c.ctx, "k")
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
		if nested {
			c.ended(outer, holdfast.ErrLost)
		}
		c.held(c.Locker, "k")
		c.unlock(their)
	}
}

// Unlock at the very moment of the deadline, before any listener is told, sends no release.
func unlockExpired(c *harness) {
	for range 5 {
		l := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(100*time.Millisecond))
		time.Sleep(time.Until(l.Deadline()))
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
		if c.Kind.Nodes == 0 { // a quorum releases holds that a node with a slow clock may keep for longer
			require.NotContains(c.T, c.noted(), "release")
		}
		locktest.RequireSentinel(c.T, l.Unlock(c.ctx), holdfast.ErrReleased)
	}
}

// The entry has ended whatever Unlock returns, and the release goes on.
func unlockUnknown(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	hook, held := locktest.Holding("release")
	c.Proxy.Each(func(p *redistest.Proxy) {
		swallowed := p.SwallowReply(1, locktest.Is("release"))
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
	done := locktest.Go(func() error { return l.Unlock(ctx) })
	locktest.Within(c.T, held)
	c.ended(l, holdfast.ErrReleased)
	cancel(errMine)
	err := <-done
	for _, e := range []error{holdfast.ErrUnknown, context.Canceled, errMine} {
		require.ErrorIs(c.T, err, e)
	}
	locktest.RequireSentinel(c.T, l.Unlock(c.ctx), holdfast.ErrReleased)
	c.free("k")
	c.Proxy.OnReply(nil)
	c.Proxy.Release()
}

func unlockNoAnswer(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	c.Proxy.HoldRequests(true)
	err := l.Unlock(c.ctx)
	require.ErrorIs(c.T, err, holdfast.ErrUnknown)
	ownTime(c.T, err)
	c.ended(l, holdfast.ErrReleased)
	unanswered := holdfast.ErrUnknown
	if c.Kind.Nodes > 0 {
		unanswered = holdfast.ErrUnavailable // by now it is known to be away, and not asked
	}
	_, err = c.Locker.TryLock(c.ctx, "k")
	require.ErrorIs(c.T, err, unanswered)
	ownTime(c.T, err)
	_, err = c.Locker.Inspect(c.ctx, "k")
	require.ErrorIs(c.T, err, holdfast.ErrUnknown)
	ownTime(c.T, err)
	c.Proxy.HoldRequests(false)
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
}

// ownTime requires that an error does not show the time that a call has: the
// caller's context is not over.
func ownTime(t testing.TB, err error) {
	t.Helper()
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, context.Canceled)
}

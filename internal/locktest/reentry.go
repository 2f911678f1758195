package locktest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var reentryCases = []contractCase{
	{"Reentry_CountsAndAnyOrderOfUnlock", defaults, reentryOrders},
	{"Reentry_ByEveryCall", defaults, reentryByEveryCall},
	{"Reentry_TwoKeys", defaults, reentryTwoKeys},
	{"Reentry_OnlyOnTheSameLockerAndKey", defaults, reentryElsewhere},
	{"Reentry_WithoutBindWaits", defaults, reentryForgotten},
	{"Reentry_ADeadLeaseNeverReenters", defaults, reentryDead},
	{"Reentry_RefusesTerms", defaults, reentryTerms},
	{"Reentry_SharedByGoroutines", defaults, reentryShared},
	{"Reentry_CancelledCountsForNothing", defaults, reentryCancelled},
	{"Reentry_AnswerOfNotOursEndsTheLease", defaults, reentryLost},
}

// Every entry ends by itself, and the hold with the last of them.
func reentryOrders(c *contractRig) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		outer := lock(c.t, c.locker, c.ctx, "k")
		inner := lock(c.t, c.locker, outer.Bind(c.ctx), "k")
		inmost := lock(c.t, c.locker, inner.Bind(c.ctx), "k")
		entries := []*holdfast.Lease{outer, inner, inmost}
		for _, e := range entries {
			require.Equal(c.t, []any{"k", outer.Owner(), outer.Fence()}, []any{e.Key(), e.Owner(), e.Fence()})
		}
		for i, n := range order {
			require.Equal(c.t, 3-i, c.entries("k"))
			c.held(c.other, "k")
			c.unlock(entries[n])
			c.ended(entries[n], holdfast.ErrReleased)
			for _, later := range order[i+1:] {
				c.lives(entries[later])
			}
		}
		c.free("k")
	}
	c.tidy("k")
}

func reentryByEveryCall(c *contractRig) {
	require.NoError(c.t, c.locker.Do(c.ctx, "k", func(ctx context.Context) error {
		first, err := c.locker.TryLock(ctx, "k")
		require.NoError(c.t, err)
		second, err := c.locker.TryLockFor(ctx, "k", time.Hour)
		require.NoError(c.t, err)
		third, err := c.locker.TryLockFor(first.Bind(ctx), "k", 0)
		require.NoError(c.t, err)
		require.Equal(c.t, 4, c.entries("k"))
		require.NoError(c.t, c.locker.Do(third.Bind(ctx), "k", func(ctx context.Context) error {
			require.Equal(c.t, 5, c.entries("k"))
			return ctx.Err()
		}))
		require.Equal(c.t, 4, c.entries("k"))
		for _, l := range []*holdfast.Lease{first, second, third} {
			c.unlock(l)
		}
		require.Equal(c.t, 1, c.entries("k"))
		return ctx.Err()
	}))
	c.tidy("k")
}

// A context may be bound to leases of several keys.
func reentryTwoKeys(c *contractRig) {
	a := lock(c.t, c.locker, c.ctx, "a")
	b := lock(c.t, c.locker, a.Bind(c.ctx), "b")
	ctx := b.Bind(a.Bind(c.ctx))
	innerA, innerB := lock(c.t, c.locker, ctx, "a"), lock(c.t, c.locker, ctx, "b")
	require.Equal(c.t, []int{2, 2}, []int{c.entries("a"), c.entries("b")})

	// Of two bindings on one key the nearest counts.
	c.unlock(a)
	nearest := innerA.Bind(context.WithoutCancel(ctx))
	c.unlock(lock(c.t, c.locker, nearest, "a"))
	_, err := c.locker.TryLock(context.WithoutCancel(ctx), "a")
	require.ErrorIs(c.t, err, holdfast.ErrReleased)
	for _, l := range []*holdfast.Lease{innerA, innerB, b} {
		c.unlock(l)
	}
	c.free("a")
	c.free("b")
}

func reentryElsewhere(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	ctx := l.Bind(c.ctx)
	c.held(c.other, "k")
	_, err := c.other.TryLock(ctx, "k")
	require.ErrorIs(c.t, err, holdfast.ErrNotAcquired)

	another := lock(c.t, c.locker, ctx, "another")
	require.NotEqual(c.t, l.Owner(), another.Owner())

	// The binding of one locker does not hide that of the other.
	there := lock(c.t, c.other, ctx, "there")
	both := there.Bind(ctx)
	c.unlock(lock(c.t, c.locker, both, "k"))
	c.unlock(lock(c.t, c.other, both, "there"))
	for _, l := range []*holdfast.Lease{there, another, l} {
		c.unlock(l)
	}
}

// As with sync.Mutex.
func reentryForgotten(c *contractRig) {
	outer := lock(c.t, c.locker, c.ctx, "k")
	c.held(c.locker, "k")
	inner := c.queue(c.locker, "k")
	c.unlock(outer)
	c.unlock(got(c.t, inner))
}

func reentryDead(c *contractRig) {
	released := lock(c.t, c.locker, c.ctx, "released")
	lost := lock(c.t, c.locker, c.ctx, "lost")
	half := lock(c.t, c.locker, c.ctx, "half")
	inner := lock(c.t, c.locker, half.Bind(c.ctx), "half")
	bound := map[*holdfast.Lease]context.Context{released: released.Bind(c.ctx), lost: lost.Bind(c.ctx), inner: inner.Bind(c.ctx)}
	c.unlock(released)
	c.unlock(inner)
	_, err := c.locker.ForceUnlock(c.ctx, "lost")
	require.NoError(c.t, err)
	if c.kind.Nodes > 0 { // which releases it wherever it may be left
		c.releasedAfterLoss("force_release")
	}
	c.commands()
	for l, why := range map[*holdfast.Lease]error{released: holdfast.ErrReleased, lost: holdfast.ErrLost, inner: holdfast.ErrReleased} {
		for _, ctx := range []context.Context{bound[l], context.WithoutCancel(bound[l]), l.Bind(c.ctx), context.WithoutCancel(l.Bind(c.ctx))} {
			_, err := c.locker.Lock(ctx, l.Key())
			require.ErrorIs(c.t, err, why)
			_, err = c.locker.TryLock(ctx, l.Key())
			require.ErrorIs(c.t, err, why)
			_, err = c.locker.TryLockFor(ctx, l.Key(), time.Minute)
			require.ErrorIs(c.t, err, why)
			require.ErrorIs(c.t, c.locker.Do(ctx, l.Key(), unreachable(c.t)), why)
		}
	}
	c.quiet()
	require.Equal(c.t, 1, c.entries("half"))
	c.unlock(half)
}

func reentryTerms(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	c.commands()
	for _, call := range []holdfast.LockOption{holdfast.FixedLease(time.Second), holdfast.MaxHold(time.Second)} {
		_, err := c.locker.Lock(l.Bind(c.ctx), "k", call)
		require.ErrorContains(c.t, err, "nested")
		require.ErrorContains(c.t, err, "FixedLease")
		require.ErrorContains(c.t, err, "MaxHold")
	}
	c.quiet()
	c.lives(l)
	c.unlock(l)
}

// Goroutines that share a bound context are one owner; their calls do not
// disturb the count.
func reentryShared(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	ctx := l.Bind(c.ctx)
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		all.Go(func() {
			for range 5 {
				if err := c.locker.Do(ctx, "k", func(context.Context) error { return nil }); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	require.Empty(c.t, errs)
	require.Equal(c.t, 1, c.entries("k"))
	c.unlock(l)
	c.free("k")
}

// A nested call that is cancelled while it is under way leaves the count as it
// was, also when it arrives later.
func reentryCancelled(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	hook, held := holding("recount")
	c.proxy.OnRequest(hook)
	ctx, cancel := context.WithCancel(l.Bind(c.ctx))
	done := lockAside(c.locker, ctx, "k")
	within(c.t, held)
	cancel()
	a := <-done
	require.Nil(c.t, a.lease)
	require.ErrorIs(c.t, a.err, holdfast.ErrUnknown)
	require.ErrorIs(c.t, a.err, context.Canceled)
	c.lives(l)
	c.proxy.OnRequest(nil)
	c.proxy.Release()

	// The next nested call comes after what undoes the last.
	inner := lock(c.t, c.locker, l.Bind(c.ctx), "k")
	require.Equal(c.t, 2, c.entries("k"))
	c.unlock(inner)
	require.Equal(c.t, 1, c.entries("k"))
	c.unlock(l)
	c.free("k")
}

func reentryLost(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	c.server.Do(c.t, "DEL", "k")
	_, err := c.locker.Lock(l.Bind(c.ctx), "k")
	require.ErrorIs(c.t, err, holdfast.ErrLost)
	c.ended(l, holdfast.ErrLost)
	c.free("k")
}

// releasedAfterLoss waits for the release that a quorum sends when a lease was lost,
// right after the command that told of it.
func (c *contractRig) releasedAfterLoss(told string) {
	c.t.Helper()
	await(c.t, func() bool {
		all := c.noted()
		return slices.Equal([]string{told, "release"}, all[max(len(all)-2, 0):])
	})
}

package contract

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

var reentryCases = []testCase{
	{"Reentry_CountsAndAnyOrderOfUnlock", ofOneHolder, defaults, reentryOrders},
	{"Reentry_ByEveryCall", anywhere, defaults, reentryByEveryCall},
	{"Reentry_TwoKeys", anywhere, defaults, reentryTwoKeys},
	{"Reentry_AValueIsAskedForOnce", anywhere, defaults, reentryValues},
	{"Reentry_OnlyOnTheSameLockerAndKey", ofOneHolder, defaults, reentryElsewhere},
	{"Reentry_ADeadLeaseNeverReenters", anywhere, defaults, reentryDead},
	{"Reentry_RefusesTerms", anywhere, defaults, reentryTerms},
	{"Reentry_SharedByGoroutines", anywhere, defaults, reentryShared},
	{"Reentry_CancelledCountsForNothing", servers, defaults, reentryCancelled},
	{"Reentry_AnswerOfNotOursEndsTheLease", servers, defaults, reentryLost},
}

// Every entry ends by itself, and the hold with the last of them.
func reentryOrders(c *harness) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		outer := locktest.Lock(c.T, c.Locker, c.ctx, "k")
		inner := locktest.Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
		inmost := locktest.Lock(c.T, c.Locker, inner.Bind(c.ctx), "k")
		entries := []*holdfast.Lease{outer, inner, inmost}
		for _, e := range entries {
			require.Equal(c.T, []any{"k", outer.Owner(), outer.Fence()}, []any{e.Key(), e.Owner(), e.Fence()})
		}
		for i, n := range order {
			require.Equal(c.T, 3-i, c.Entries("k"))
			c.held(c.Other, "k")
			c.unlock(entries[n])
			c.ended(entries[n], holdfast.ErrReleased)
			for _, later := range order[i+1:] {
				c.lives(entries[later])
			}
		}
		c.free("k")
	}
	c.Tidy("k")
}

func reentryByEveryCall(c *harness) {
	require.NoError(c.T, c.Locker.Do(c.ctx, "k", func(ctx context.Context) error {
		first := locktest.Must(c.Locker.TryLock(ctx, "k"))(c.T)
		second := locktest.Must(c.Locker.TryLockFor(ctx, "k", time.Hour))(c.T)
		third := locktest.Must(c.Locker.TryLockFor(first.Bind(ctx), "k", 0))(c.T)
		require.Equal(c.T, 4, c.Entries("k"))
		require.NoError(c.T, c.Locker.Do(third.Bind(ctx), "k", func(ctx context.Context) error {
			require.Equal(c.T, 5, c.Entries("k"))
			return ctx.Err()
		}))
		require.Equal(c.T, 4, c.Entries("k"))
		for _, l := range []*holdfast.Lease{first, second, third} {
			c.unlock(l)
		}
		require.Equal(c.T, 1, c.Entries("k"))
		return ctx.Err()
	}))
	c.Tidy("k")
}

// A context may be bound to leases of several keys.
func reentryTwoKeys(c *harness) {
	a := locktest.Lock(c.T, c.Locker, c.ctx, "a")
	b := locktest.Lock(c.T, c.Locker, a.Bind(c.ctx), "b")
	ctx := b.Bind(a.Bind(c.ctx))
	innerA, innerB := locktest.Lock(c.T, c.Locker, ctx, "a"), locktest.Lock(c.T, c.Locker, ctx, "b")
	require.Equal(c.T, []int{2, 2}, []int{c.Entries("a"), c.Entries("b")})

	// Of two bindings on one key the nearest counts.
	c.unlock(a)
	nearest := innerA.Bind(context.WithoutCancel(ctx))
	c.unlock(locktest.Lock(c.T, c.Locker, nearest, "a"))
	require.ErrorIs(c.T, locktest.ErrOf(c.Locker.TryLock(context.WithoutCancel(ctx), "a")), holdfast.ErrReleased)
	for _, l := range []*holdfast.Lease{innerA, innerB, b} {
		c.unlock(l)
	}
	c.free("a")
	c.free("b")
}

func reentryElsewhere(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	ctx := l.Bind(c.ctx)
	c.held(c.Other, "k")
	require.ErrorIs(c.T, locktest.ErrOf(c.Other.TryLock(ctx, "k")), holdfast.ErrNotAcquired)

	another := locktest.Lock(c.T, c.Locker, ctx, "another")
	require.NotEqual(c.T, l.Owner(), another.Owner())

	// The binding of one locker does not hide that of the other.
	there := locktest.Lock(c.T, c.Other, ctx, "there")
	both := there.Bind(ctx)
	c.unlock(locktest.Lock(c.T, c.Locker, both, "k"))
	c.unlock(locktest.Lock(c.T, c.Other, both, "there"))
	for _, l := range []*holdfast.Lease{there, another, l} {
		c.unlock(l)
	}
}

func reentryDead(c *harness) {
	released := locktest.Lock(c.T, c.Locker, c.ctx, "released")
	lost := locktest.Lock(c.T, c.Locker, c.ctx, "lost")
	half := locktest.Lock(c.T, c.Locker, c.ctx, "half")
	inner := locktest.Lock(c.T, c.Locker, half.Bind(c.ctx), "half")
	bound := map[*holdfast.Lease]context.Context{released: released.Bind(c.ctx), lost: lost.Bind(c.ctx), inner: inner.Bind(c.ctx)}
	c.unlock(released)
	c.unlock(inner)
	c.force(c.Locker, "lost")
	if c.Kind.Nodes > 0 { // which releases it wherever it may be left
		c.releasedAfterLoss("force_release")
	}
	c.commands()
	for l, why := range map[*holdfast.Lease]error{released: holdfast.ErrReleased, lost: holdfast.ErrLost, inner: holdfast.ErrReleased} {
		for _, ctx := range []context.Context{bound[l], context.WithoutCancel(bound[l]), l.Bind(c.ctx), context.WithoutCancel(l.Bind(c.ctx))} {
			for name, call := range c.calls(ctx, l.Key()) {
				require.ErrorIs(c.T, call(), why, name)
			}
		}
	}
	c.quiet()
	require.Equal(c.T, 1, c.Entries("half"))
	c.unlock(half)
}

func reentryTerms(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	c.commands()
	for _, call := range []holdfast.LockOption{holdfast.FixedLease(time.Second), holdfast.MaxHold(time.Second), holdfast.Label("l")} {
		_, err := c.Locker.Lock(l.Bind(c.ctx), "k", call)
		require.ErrorContains(c.T, err, "nested")
		require.ErrorContains(c.T, err, "FixedLease, MaxHold and Label")
	}
	c.quiet()
	c.lives(l)
	c.unlock(l)
}

// Goroutines that share a bound context are one owner; their calls do not
// disturb the count.
func reentryShared(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	ctx := l.Bind(c.ctx)
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		all.Go(func() {
			for range 5 {
				if err := c.Locker.Do(ctx, "k", func(context.Context) error { return nil }); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	require.Empty(c.T, errs)
	require.Equal(c.T, 1, c.Entries("k"))
	c.unlock(l)
	c.free("k")
}

// A nested call that is cancelled while it is under way leaves the count as it was, even if
// it arrives later.
func reentryCancelled(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	held, letGo := c.hold(c.Proxy.OnRequest, "set_entries")
	ctx, cancel := context.WithCancel(l.Bind(c.ctx))
	done := locktest.GoLock(c.Locker, ctx, "k")
	locktest.Within(c.T, held)
	cancel()
	a := <-done
	require.Nil(c.T, a.Lease)
	require.ErrorIs(c.T, a.Err, holdfast.ErrUnknown)
	require.ErrorIs(c.T, a.Err, context.Canceled)
	c.lives(l)
	letGo()

	// The next nested call comes after what undoes the last.
	inner := locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k")
	require.Equal(c.T, 2, c.Entries("k"))
	c.unlock(inner)
	require.Equal(c.T, 1, c.Entries("k"))
	c.unlock(l)
	c.free("k")
}

// A context that is bound to many leases, as LockAll binds one, asks its parent for a value once, and attaches
// others to itself.
func reentryValues(c *harness) {
	asked := &counted{Context: c.ctx}
	var ctx context.Context = asked
	for i := range 12 {
		l := locktest.Lock(c.T, c.Locker, c.ctx, fmt.Sprint("k", i))
		defer c.unlock(l)
		ctx = l.Bind(ctx)
	}
	asked.calls = 0
	require.Nil(c.T, ctx.Value(counted{}))
	require.Equal(c.T, 1, asked.calls)
	_, cancel := context.WithCancel(ctx)
	cancel()
	require.Equal(c.T, 1, asked.calls)
}

// counted is a context that counts the values that it is asked for.
type counted struct {
	context.Context
	calls int
}

func (c *counted) Value(key any) any {
	c.calls++
	return c.Context.Value(key)
}

func reentryLost(c *harness) {
	for _, nested := range []func(context.Context, string, ...holdfast.LockOption) (*holdfast.Lease, error){c.Locker.Lock, c.Locker.TryLock} {
		l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
		c.Server.Do(c.T, "DEL", c.Name("k"))
		require.ErrorIs(c.T, locktest.ErrOf(nested(l.Bind(c.ctx), "k")), holdfast.ErrLost)
		c.ended(l, holdfast.ErrLost)
		c.free("k")
	}
}

// releasedAfterLoss waits for the release that a quorum sends when a lease was lost,
// right after the command that told of it.
func (c *harness) releasedAfterLoss(told string) {
	c.T.Helper()
	locktest.Await(c.T, func() bool {
		all := c.noted()
		return slices.Equal([]string{told, "release"}, all[max(len(all)-2, 0):])
	})
}

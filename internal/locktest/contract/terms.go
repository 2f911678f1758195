package contract

import (
	"log/slog"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

var termsCases = []testCase{
	{"Terms_FixedLeaseIsNeverRenewedAndGoneAfterIt", locktest.Options{Lease: 300 * time.Millisecond}, termsFixed},
	{"Terms_MaxHoldIsRenewedUntilThen", locktest.Options{Lease: 6 * time.Second}, termsMaxHoldRenewed},
	{"Terms_MaxHoldOfALocker", defaults, termsMaxHoldLocker},
	{"Terms_MaxHoldOfALockerIsRefused", locktest.Options{MaxHold: time.Minute}, termsMaxHoldRefused},
	{"Terms_OfAWaiter", defaults, termsWaiter},
}

func termsFixed(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(2*time.Second))
	require.LessOrEqual(c.T, c.Remaining("k"), 2*time.Second)
	deadline := l.Deadline()
	c.ended(l, holdfast.ErrLost)
	require.ErrorIs(c.T, l.Err(), watchdog.ErrFixedLease)
	require.ErrorIs(c.T, l.Err(), watchdog.ErrDeadline, "as before it had a reason of its own")
	require.False(c.T, time.Now().Before(deadline))
	require.Equal(c.T, deadline, l.Deadline())
	require.NotContains(c.T, c.commands(), "renew")
	next := locktest.Lock(c.T, c.Other, c.ctx, "k") // no message comes
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	c.held(c.Locker, "k")
	c.unlock(next)
}

func termsMaxHoldRenewed(c *harness) {
	before := time.Now()
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.MaxHold(8*time.Second))
	c.ended(l, holdfast.ErrLost)
	require.GreaterOrEqual(c.T, time.Since(before), 8*time.Second)
	if c.Server != nil {
		require.Contains(c.T, c.commands(), "renew")
	}
	c.Tidy("k")
}

// Only the release frees the key in time. What asked for terms of its own keeps them.
func termsMaxHoldLocker(c *harness) {
	var logs redistest.Log
	c.Locker = c.Kind.Open(c.T, c.Client, locktest.Options{Lease: locktest.Long, MaxHold: 4 * time.Second, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	before := time.Now()
	fixed := locktest.Lock(c.T, c.Locker, c.ctx, "fixed", holdfast.FixedLease(time.Minute))
	shorter := locktest.Lock(c.T, c.Locker, c.ctx, "shorter", holdfast.MaxHold(200*time.Millisecond))
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	require.LessOrEqual(c.T, time.Until(l.Deadline()), 4*time.Second)
	their := locktest.Lock(c.T, c.Other, c.ctx, "shorter")
	c.ended(shorter, holdfast.ErrLost)
	require.ErrorIs(c.T, shorter.Unlock(c.ctx), holdfast.ErrLost)
	c.unlock(their)
	c.lives(l)
	waiter := c.inQueue(c.Locker, "k")
	c.ended(l, holdfast.ErrLost)
	require.GreaterOrEqual(c.T, time.Since(before), 4*time.Second)
	require.ErrorContains(c.T, l.Unlock(c.ctx), "the longest hold is over")
	next := locktest.Got(c.T, waiter)
	c.ended(next, holdfast.ErrLost)
	require.GreaterOrEqual(c.T, time.Since(before), 8*time.Second)
	c.lives(fixed)
	c.unlock(fixed)
	if c.Server != nil { // else there is no log
		said := func() int { return strings.Count(logs.String(), `reason="the longest hold is over"`) }
		locktest.Await(c.T, func() bool { return said() >= 3 }) // a lease ends before the log says so
		require.Equal(c.T, 3, said(), logs.String())
	}
	for _, key := range []string{"k", "shorter", "fixed"} {
		c.Tidy(key)
	}
}

func termsMaxHoldRefused(c *harness) {
	_, err := c.Locker.TryLock(c.ctx, "k", holdfast.MaxHold(time.Minute+1))
	require.ErrorContains(c.T, err, "MaxHold: 1m0.000000001s is longer than WithMaxHold, 1m0s")
	locktest.RequireSentinel(c.T, err, holdfast.ErrInvalidArgument)
	c.quiet()
	for _, call := range []holdfast.LockOption{holdfast.FixedLease(time.Hour), holdfast.MaxHold(time.Minute)} {
		l := locktest.Lock(c.T, c.Locker, c.ctx, "k", call)
		c.unlock(locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k"))
		c.unlock(l) // before its end
		c.free("k")
	}
}

// A waiter gets what it asked for, be it more or less than it would get without.
func termsWaiter(c *harness) {
	for _, lease := range []time.Duration{3 * time.Second, time.Hour} {
		their := locktest.Lock(c.T, c.Other, c.ctx, "k")
		w := c.inQueue(c.Locker, "k", holdfast.FixedLease(lease))
		c.unlock(their)
		l := locktest.Got(c.T, w)
		left := time.Until(l.Deadline())
		require.LessOrEqual(c.T, left, lease)
		require.LessOrEqual(c.T, c.Remaining("k"), lease)
		if lease == time.Hour {
			require.Greater(c.T, left, lease/2)
			c.unlock(l)
			continue
		}
		next := locktest.Lock(c.T, c.Other, c.ctx, "k") // when it has run out
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
		c.unlock(next)
	}
}

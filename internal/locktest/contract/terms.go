package contract

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

var termsCases = []testCase{
	{"Terms_FixedLeaseIsNeverRenewed", Options{Lease: 300 * time.Millisecond}, termsFixed},
	{"Terms_FixedLeaseIsGoneAfterIt", defaults, termsFixedGone},
	{"Terms_MaxHoldReleasesTheKey", Options{Lease: Long}, termsMaxHold},
	{"Terms_MaxHoldIsRenewedUntilThen", Options{Lease: 1500 * time.Millisecond}, termsMaxHoldRenewed},
	{"Terms_UnlockBeforeTheCap", defaults, termsEarly},
	{"Terms_OfAWaiter", defaults, termsWaiter},
}

func termsFixed(c *harness) {
	l := Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(700*time.Millisecond))
	deadline := l.Deadline()
	c.ended(l, holdfast.ErrLost)
	require.False(c.T, time.Now().Before(deadline))
	require.Equal(c.T, deadline, l.Deadline())
	require.NotContains(c.T, c.commands(), "renew")
}

func termsFixedGone(c *harness) {
	l := Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(200*time.Millisecond))
	require.LessOrEqual(c.T, c.Remaining("k"), 200*time.Millisecond)
	next := Lock(c.T, c.Other, c.ctx, "k") // no message comes
	require.Error(c.T, l.Err())
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	c.held(c.Locker, "k")
	c.unlock(next)
}

// The lease is a long one: only the release frees the key in time.
func termsMaxHold(c *harness) {
	before := time.Now()
	l := Lock(c.T, c.Locker, c.ctx, "k", holdfast.MaxHold(200*time.Millisecond))
	next := Lock(c.T, c.Other, c.ctx, "k")
	require.GreaterOrEqual(c.T, time.Since(before), 200*time.Millisecond)
	c.ended(l, holdfast.ErrLost)
	c.unlock(next)
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	c.Tidy("k")
}

func termsMaxHoldRenewed(c *harness) {
	before := time.Now()
	l := Lock(c.T, c.Locker, c.ctx, "k", holdfast.MaxHold(2*time.Second))
	c.ended(l, holdfast.ErrLost)
	require.GreaterOrEqual(c.T, time.Since(before), 2*time.Second)
	if c.Server != nil {
		require.Contains(c.T, c.commands(), "renew")
	}
	c.Tidy("k")
}

func termsEarly(c *harness) {
	for _, call := range []holdfast.LockOption{holdfast.FixedLease(time.Minute), holdfast.MaxHold(time.Minute)} {
		l := Lock(c.T, c.Locker, c.ctx, "k", call)
		c.unlock(Lock(c.T, c.Locker, l.Bind(c.ctx), "k"))
		c.unlock(l)
		c.free("k")
	}
}

// A waiter gets what it asked for, be it more or less than it would get without.
func termsWaiter(c *harness) {
	for _, lease := range []time.Duration{500 * time.Millisecond, time.Hour} {
		their := Lock(c.T, c.Other, c.ctx, "k")
		w := c.inQueue(c.Locker, "k", holdfast.FixedLease(lease))
		c.unlock(their)
		l := Got(c.T, w)
		left := time.Until(l.Deadline())
		require.LessOrEqual(c.T, left, lease)
		require.LessOrEqual(c.T, c.Remaining("k"), lease)
		if lease == time.Hour {
			require.Greater(c.T, left, lease/2)
			c.unlock(l)
			continue
		}
		next := Lock(c.T, c.Other, c.ctx, "k") // when it has run out
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
		c.unlock(next)
	}
}

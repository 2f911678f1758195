package locktest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var termsCases = []contractCase{
	{"Terms_FixedLeaseIsNeverRenewed", Options{Lease: 300 * time.Millisecond}, termsFixed},
	{"Terms_FixedLeaseIsGoneAfterIt", defaults, termsFixedGone},
	{"Terms_MaxHoldReleasesTheKey", Options{Lease: long}, termsMaxHold},
	{"Terms_MaxHoldIsRenewedUntilThen", Options{Lease: 1500 * time.Millisecond}, termsMaxHoldRenewed},
	{"Terms_UnlockBeforeTheCap", defaults, termsEarly},
	{"Terms_OfAWaiter", defaults, termsWaiter},
}

func termsFixed(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k", holdfast.FixedLease(700*time.Millisecond))
	deadline := l.Deadline()
	c.ended(l, holdfast.ErrLost)
	require.False(c.t, time.Now().Before(deadline))
	require.Equal(c.t, deadline, l.Deadline())
	require.NotContains(c.t, c.commands(), "renew")
}

func termsFixedGone(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k", holdfast.FixedLease(200*time.Millisecond))
	require.LessOrEqual(c.t, number(c.t, c.server, "PTTL", "k"), 200)
	next := lock(c.t, c.other, c.ctx, "k") // no message comes
	require.Error(c.t, l.Err())
	require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
	c.held(c.locker, "k")
	c.unlock(next)
}

// The lease is a long one: only the release frees the key in time.
func termsMaxHold(c *contractRig) {
	before := time.Now()
	l := lock(c.t, c.locker, c.ctx, "k", holdfast.MaxHold(200*time.Millisecond))
	next := lock(c.t, c.other, c.ctx, "k")
	require.GreaterOrEqual(c.t, time.Since(before), 200*time.Millisecond)
	c.ended(l, holdfast.ErrLost)
	c.unlock(next)
	require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
	c.tidy("k")
}

func termsMaxHoldRenewed(c *contractRig) {
	before := time.Now()
	l := lock(c.t, c.locker, c.ctx, "k", holdfast.MaxHold(2*time.Second))
	c.ended(l, holdfast.ErrLost)
	require.GreaterOrEqual(c.t, time.Since(before), 2*time.Second)
	require.Contains(c.t, c.commands(), "renew")
	c.tidy("k")
}

func termsEarly(c *contractRig) {
	for _, call := range []holdfast.LockOption{holdfast.FixedLease(time.Minute), holdfast.MaxHold(time.Minute)} {
		l := lock(c.t, c.locker, c.ctx, "k", call)
		c.unlock(lock(c.t, c.locker, l.Bind(c.ctx), "k"))
		c.unlock(l)
		c.free("k")
	}
}

// Whoever has waited gets what it asked for, be it more or less than what it would
// get without.
func termsWaiter(c *contractRig) {
	for _, lease := range []time.Duration{500 * time.Millisecond, time.Hour} {
		their := lock(c.t, c.other, c.ctx, "k")
		w := c.inQueue(c.locker, "k", holdfast.FixedLease(lease))
		c.unlock(their)
		l := got(c.t, w)
		left := time.Until(l.Deadline())
		require.LessOrEqual(c.t, left, lease)
		require.LessOrEqual(c.t, number(c.t, c.server, "PTTL", "k"), int(lease.Milliseconds()))
		if lease == time.Hour {
			require.Greater(c.t, left, lease/2)
			c.unlock(l)
			continue
		}
		next := lock(c.t, c.other, c.ctx, "k") // when it has run out
		require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
		c.unlock(next)
	}
}

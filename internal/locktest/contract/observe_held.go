package contract

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// At a renewal, at Unlock, or by the cap.
func observeLost(c *harness) {
	s := c.observed(Options{Lease: 6 * time.Second})
	c.Other = c.Kind.Open(c.T, c.Server.Client(c.T), Options{Lease: 6 * time.Second})
	n := 0
	lost := func(l *holdfast.Lease) {
		c.T.Helper()
		n++
		e := await[holdfast.LostEvent](c, s, n)[n-1]
		require.Equal(c.T, l.Key(), e.Key)
		require.Positive(c.T, e.Held)
		require.Equal(c.T, l.Err(), e.Err)
		require.ErrorIs(c.T, e.Err, holdfast.ErrLost)
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	}
	force := func(key string) {
		_, err := c.Other.ForceUnlock(c.ctx, key)
		require.NoError(c.T, err)
	}
	l := Lock(c.T, c.Locker, c.ctx, "at a renewal")
	force(l.Key())
	lost(l)
	lost(Lock(c.T, c.Locker, c.ctx, "capped", holdfast.MaxHold(100*time.Millisecond)))
	l = Lock(c.T, c.Locker, c.ctx, "at Unlock")
	force(l.Key())
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	require.Equal(c.T, []string{
		"acquired at a renewal by call", "lost at a renewal", "acquired capped by call", "lost capped",
		"acquired at Unlock by call", "lost at Unlock",
	}, c.told(s, "holdfast", "queue")) // nodes of a busy machine may miss a first attempt
}

func observeRenewed(c *harness) {
	const lease, late = 6 * time.Second, 300 * time.Millisecond // no reply takes so long that the renewal is repeated
	s := c.observed(Options{Lease: lease})
	l := Lock(c.T, c.Locker, c.ctx, "k")
	fixed := Lock(c.T, c.Locker, c.ctx, "fixed", holdfast.FixedLease(time.Minute))
	confirmed := func(n int) (all []holdfast.RenewedEvent) {
		Await(c.T, func() bool {
			all = slices.DeleteFunc(of[holdfast.RenewedEvent](s), func(e holdfast.RenewedEvent) bool { return e.Err != nil })
			return len(all) >= n
		})
		return all
	}
	for _, e := range confirmed(1) {
		require.Equal(c.T, "k", e.Key)
		require.Less(c.T, e.Late, lease)
	}
	c.Proxy.SetDelay(0, late)
	n := len(confirmed(0))
	slow := confirmed(n + 2)[n+1] // the one before may have been under way
	require.GreaterOrEqual(c.T, slow.Late, late-lease/30)
	require.Less(c.T, slow.Late, lease)
	c.Proxy.SetDelay(0, 0)
	c.unlock(l)
	c.unlock(fixed)
	require.Len(c.T, c.told(s, "holdfast"), 4)
}

// Close releases what is held.
func observeClose(c *harness) {
	s := c.observed(defaults)
	outer := Lock(c.T, c.Locker, c.ctx, "k")
	Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
	waiter := c.queue(c.Locker, "k")
	time.Sleep(pause)
	told := c.told(s, "refused") // perhaps too late to be told
	require.ErrorIs(c.T, Within(c.T, waiter).Err, holdfast.ErrClosed)
	require.Equal(c.T, []string{
		"acquired k by call", "acquired k by re-entry", "queue k 1", "queue k 0", "released k", "released k",
	}, told)
	for _, r := range of[holdfast.ReleasedEvent](s) {
		require.ErrorIs(c.T, r.Err, holdfast.ErrClosed)
		require.GreaterOrEqual(c.T, r.Held, pause)
	}
	require.ErrorIs(c.T, outer.Unlock(c.ctx), holdfast.ErrClosed)
}

package locktest

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// G5: a reply lost on the wire changes nothing.
var replyCases = []contractCase{
	{"G5_AcquireTwiceCountsOnce", defaults, g5Acquire},
	{"G5_FencedAcquireTwiceCountsOnce", Options{Fencing: true}, g5Acquire},
	{"G5_SingleAttemptIsUndone", defaults, g5Single},
	{"G5_EnterTwiceCountsOnce", defaults, g5Enter},
	{"G5_SingleEnterIsUndone", defaults, g5SingleEnter},
	{"G5_LeaveTwiceCountsOnce", defaults, g5Leave},
	{"G5_ReleaseTwiceReleasesOnce", defaults, g5Release},
	{"G5_ReleaseAfterALateEnter", defaults, g5LateEnter},
	{"G5_RenewTwice", Options{Lease: 2 * time.Second}, g5Renew},
	{"G5_FixedLeaseIsUndoneForAsLongAsItLasts", Options{Lease: 300 * time.Millisecond}, g5LongFixed},
}

// swallow loses the next replies to a script. So many must have come by the end of
// the case.
func (c *contractRig) swallow(n int, scripts ...string) {
	for range n {
		lost := c.proxy.SwallowReply(1, is(scripts...))
		c.t.Cleanup(func() {
			select {
			case <-lost:
			case <-time.After(5 * time.Second): // a quorum does not wait for all its nodes
				c.t.Errorf("no reply to %v was lost", scripts)
			}
		})
	}
}

// cut loses the next calls of a script, with their connections.
func (c *contractRig) cut(n int, scripts ...string) {
	c.proxy.each(func(p *redistest.Proxy) {
		var left atomic.Int64
		left.Store(int64(n))
		p.OnRequest(func(cmd []string) redistest.Verdict {
			if is(scripts...)(cmd) && left.Add(-1) >= 0 {
				return redistest.Cut
			}
			return redistest.Pass
		})
	})
}

func g5Acquire(c *contractRig) {
	for _, times := range []int{1, 2} {
		c.swallow(times, "acquire", "enter")
		l := lock(c.t, c.locker, c.ctx, "k")
		require.Equal(c.t, l.Owner(), c.owner("k"))
		require.Equal(c.t, 1, c.entries("k"))
		c.unlock(l)
		c.free("k")
	}
	c.tidy("k")
}

// The clean-up leaves a tombstone, for what arrives later still.
func g5Single(c *contractRig) {
	c.swallow(1, "acquire")
	_, err := c.locker.TryLock(c.ctx, "k")
	require.ErrorIs(c.t, err, holdfast.ErrUnknown)
	require.NotErrorIs(c.t, err, holdfast.ErrNotAcquired)
	c.tidy("k")
	keys := c.keys()
	require.Len(c.t, keys, 1)
	require.True(c.t, strings.HasPrefix(keys[0], "holdfast_gone:{k}:"), keys[0])
}

func g5Enter(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	c.swallow(2, "recount")
	inner := lock(c.t, c.locker, l.Bind(c.ctx), "k")
	require.Equal(c.t, 2, c.entries("k"))
	c.unlock(inner)
	require.Equal(c.t, 1, c.entries("k"))
	c.unlock(l)
	c.free("k")
}

func g5SingleEnter(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	c.swallow(1, "recount")
	_, err := c.locker.TryLock(l.Bind(c.ctx), "k")
	require.ErrorIs(c.t, err, holdfast.ErrUnknown)
	c.lives(l)
	await(c.t, func() bool { return c.entries("k") == 1 })
	c.unlock(l)
	c.free("k")
}

// Also when it is the call that is lost.
func g5Leave(c *contractRig) {
	for _, lose := range []func(int, ...string){c.swallow, c.cut} {
		l := lock(c.t, c.locker, c.ctx, "k")
		inner := lock(c.t, c.locker, l.Bind(c.ctx), "k")
		lose(2, "recount")
		require.ErrorIs(c.t, inner.Unlock(c.ctx), holdfast.ErrUnknown)
		c.ended(inner, holdfast.ErrReleased)
		c.lives(l)
		await(c.t, func() bool { return c.entries("k") == 1 })
		c.unlock(l)
		c.free("k")
	}
}

// Also when it is the call that is lost. A repeat that finds nothing is no loss.
func g5Release(c *contractRig) {
	for _, lose := range []func(int, ...string){c.swallow, c.cut} {
		for _, times := range []int{1, 2} {
			l := lock(c.t, c.locker, c.ctx, "k")
			lose(times, "release")
			c.unlock(l)
			c.unlock(lock(c.t, c.other, c.ctx, "k"))
		}
	}
	c.tidy("k")
}

// The last release does not count: it ends the hold, whatever an entry in doubt
// has left.
func g5LateEnter(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	c.server.Do(c.t, "HSET", "k", l.Owner(), "2")
	c.unlock(l)
	c.free("k")
}

func g5Renew(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	before := l.Deadline()
	c.swallow(2, "renew")
	await(c.t, func() bool { return l.Deadline().After(before) })
	require.Equal(c.t, 1, c.entries("k"))
	c.unlock(l)
	c.free("k")
}

// The hold in doubt outlasts the locker's own lease.
func g5LongFixed(c *contractRig) {
	c.awayAfter("acquire")
	_, err := c.locker.TryLock(c.ctx, "k", holdfast.FixedLease(time.Hour))
	require.ErrorIs(c.t, err, holdfast.ErrUnknown)
	time.Sleep(1500 * time.Millisecond) // several leases of the locker
	c.proxy.Refuse(false)
	c.tidy("k")
}

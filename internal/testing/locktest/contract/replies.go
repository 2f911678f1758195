package contract

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// G5: a reply lost on the wire changes nothing.
var replyCases = []testCase{
	{"G5_AcquireTwiceCountsOnce", servers | ofOneHolder, defaults, g5Acquire},
	{"G5_SingleAttemptIsUndone", servers, defaults, g5Single},
	{"G5_EnterTwiceCountsOnce", servers, defaults, g5Enter},
	{"G5_LeaveTwiceCountsOnce", servers, defaults, g5Leave},
	{"G5_ReleaseTwiceReleasesOnce", servers, defaults, g5Release},
	{"G5_ReleaseAfterALateEnter", servers | ofLocks, defaults, g5LateEnter},
	{"G5_RenewTwice", servers, locktest.Options{Lease: time.Minute}, g5Renew},
	{"G5_FixedLeaseIsUndoneForAsLongAsItLasts", servers, locktest.Options{Lease: 300 * time.Millisecond}, g5LongFixed},
}

// swallow loses the next replies to a script. That many must have come by the end of the
// case.
func (c *harness) swallow(n int, scripts ...string) {
	for range n {
		lost := c.Proxy.SwallowReply(1, locktest.Is(scripts...))
		c.T.Cleanup(func() {
			select {
			case <-lost:
			case <-time.After(locktest.Patience): // a quorum does not wait for all its nodes
				c.T.Errorf("no reply to %v was lost", scripts)
			}
		})
	}
}

// cut loses the next calls of a script, with their connections.
func (c *harness) cut(n int, scripts ...string) {
	c.Proxy.Each(func(p *redistest.Proxy) {
		var left atomic.Int64
		left.Store(int64(n))
		p.OnRequest(redistest.Always(func(cmd []string) bool {
			return locktest.Is(scripts...)(cmd) && left.Add(-1) >= 0
		}, redistest.Cut))
	})
}

func g5Acquire(c *harness) {
	for _, times := range []int{1, 2} {
		c.swallow(times, "acquire", "enter")
		l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
		require.Equal(c.T, l.Owner(), c.Owner("k"))
		require.Equal(c.T, 1, c.Entries("k"))
		c.unlock(l)
		c.free("k")
	}
	c.Tidy("k")
}

// The undo leaves a tombstone, for what arrives later still.
func g5Single(c *harness) {
	c.swallow(1, "acquire")
	_, err := c.Locker.TryLock(c.ctx, "k")
	require.ErrorIs(c.T, err, holdfast.ErrUnknown)
	require.NotErrorIs(c.T, err, holdfast.ErrNotAcquired)
	c.Tidy("k")
	keys := c.Keys()
	require.Len(c.T, keys, 1)
	require.True(c.T, strings.HasPrefix(keys[0], locktest.OfKey("holdfast_gone", c.Name("k"))+":"), keys[0])
}

func g5Enter(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	c.swallow(2, "set_entries")
	inner := locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k")
	require.Equal(c.T, 2, c.Entries("k"))
	c.unlock(inner)
	require.Equal(c.T, 1, c.Entries("k"))
	c.unlock(l)
	c.free("k")
}

// An entry ends once if the reply to its SetEntries is lost, or the call.
func g5Leave(c *harness) {
	for _, lose := range []func(int, ...string){c.swallow, c.cut} {
		l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
		inner := locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k")
		lose(2, "set_entries")
		require.ErrorIs(c.T, inner.Unlock(c.ctx), holdfast.ErrUnknown)
		c.ended(inner, holdfast.ErrReleased)
		c.lives(l)
		locktest.Await(c.T, func() bool { return c.Entries("k") == 1 })
		c.unlock(l)
		c.free("k")
	}
}

// A release whose reply is lost, or the call, is repeated. A repeat that finds nothing is no loss.
func g5Release(c *harness) {
	for _, lose := range []func(int, ...string){c.swallow, c.cut} {
		for _, times := range []int{1, 2} {
			l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
			lose(times, "release")
			c.unlock(l)
			c.unlock(locktest.Lock(c.T, c.Other, c.ctx, "k"))
		}
	}
	c.Tidy("k")
}

// The last release does not count: it ends the hold, whatever an entry in doubt
// has left.
func g5LateEnter(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	c.Server.Do(c.T, "HSET", c.Name("k"), l.Owner(), "2")
	c.unlock(l)
	c.free("k")
}

func g5Renew(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	before := l.Deadline()
	c.swallow(2, "renew")
	locktest.Await(c.T, func() bool { return l.Deadline().After(before) })
	require.Equal(c.T, 1, c.Entries("k"))
	c.unlock(l)
	c.free("k")
}

// The hold in doubt outlasts the locker's own lease.
func g5LongFixed(c *harness) {
	c.awayAfter("acquire")
	require.ErrorIs(c.T, locktest.ErrOf(c.Locker.TryLock(c.ctx, "k", holdfast.FixedLease(time.Hour))), holdfast.ErrUnknown)
	time.Sleep(1500 * time.Millisecond) // several leases of the locker
	c.Proxy.Refuse(false)
	c.Tidy("k")
}

package locktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

// fairCases are what only fair locks promise.
var fairCases = []contractCase{
	{"Wait_CostsOneHeartbeatPerClient", Options{Stale: time.Second}, fairWaitCosts},
	{"Wait_BusyKeyNeedsNoHeartbeats", Options{Stale: 5 * time.Second}, fairBusy},
	{"G4_FoundThoughOthersEnter", Options{Lease: long, Stale: 2 * time.Second}, fairFoundAmongNew},
	{"G4_FoundWithinTwoHeartbeats", Options{Lease: long, Stale: 2 * time.Second}, fairFound},
	{"G2_AGrantIsNotTrustedBeyondItsFirstLease", Options{Lease: long, Stale: firstShort, FirstLease: firstShort}, fairLateGrant},
	{"G1_AGrantOfAnotherKeyIsNotBelieved", Options{Lease: long, FirstLease: long}, fairOtherKey},
	{"G1_FairGrantOvertakenByTheNext", defaults, fairOvertaken},
	{"G8_TryLockDoesNotOvertake", Options{Lease: long}, fairTryLock},
	{"G8_AnotherClientsTurnEndsARun", tenured, fairRunEnds},
}

const firstShort = 600 * time.Millisecond

// The first of a key subscribes, and each takes its place; from then on there is one
// heartbeat for all of them, in five of which the client would count as dead.
func fairWaitCosts(c *contractRig) {
	const keys, perKey = 3, 5
	var their []*holdfast.Lease
	var waits []<-chan acquired
	var want []string
	for i := range keys {
		key := fmt.Sprint("key", i)
		their = append(their, lock(c.t, c.other, c.ctx, key))
		waits = append(waits, c.inQueue(c.locker, key))
		want = append(want, "acquire", "subscribe", "enter")
		for range perKey - 1 {
			waits = append(waits, c.inQueue(c.locker, key))
			want = append(want, "enter")
		}
	}
	require.Equal(c.t, want, c.commands())
	before, began := c.heartbeatsSent(), time.Now()
	await(c.t, func() bool { return c.heartbeatsSent() >= before+10 })
	require.GreaterOrEqual(c.t, time.Since(began), 9*time.Second/5)
	c.quiet()
	for i, l := range their {
		c.unlock(l)
		for _, w := range waits[i*perKey : (i+1)*perKey] {
			c.unlock(got(c.t, w))
		}
	}
	require.NotContains(c.t, c.commands(), "subscribe")
}

// Where everybody is served soon, enters do what heartbeats are for.
func fairBusy(c *contractRig) {
	before, end := c.heartbeatsSent(), time.Now().Add(3*time.Second+500*time.Millisecond) // three heartbeats
	var both sync.WaitGroup
	for _, l := range []holdfast.Locker{c.locker, c.other} {
		both.Go(func() {
			for time.Now().Before(end) {
				c.unlock(lock(c.t, l, c.ctx, "k"))
			}
		})
	}
	both.Wait()
	require.LessOrEqual(c.t, c.heartbeatsSent()-before, 1)
}

// One has lost its place, and others enter meanwhile, which tells nothing of it.
func fairFoundAmongNew(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	lost := c.inQueue(c.locker, "k")
	owner := queued(c.t, c.server, "k")[0]
	c.server.Do(c.t, "LREM", queueOf("k"), "1", owner)
	c.server.Do(c.t, "ZREM", scoresOf("k"), owner)
	began := time.Now()
	var found atomic.Bool
	var calls [3]atomic.Int64 // of the others; one of them at least is always there
	var others sync.WaitGroup
	for i := range calls {
		others.Go(func() {
			for ; !found.Load(); calls[i].Add(1) {
				_, err := c.locker.TryLockFor(c.ctx, "k", 50*time.Millisecond)
				require.ErrorIs(c.t, err, holdfast.ErrNotAcquired)
			}
		})
	}
	await(c.t, func() bool { // until somebody stays in the queue
		before := queued(c.t, c.server, "k")
		for i := range calls {
			n := calls[i].Load()
			await(c.t, func() bool { return calls[i].Load() >= n+2 })
		}
		return slices.ContainsFunc(queued(c.t, c.server, "k"), func(o string) bool { return slices.Contains(before, o) })
	})
	require.Less(c.t, time.Since(began), 4*time.Second, "it took more than heartbeats of 400 ms")
	found.Store(true)
	others.Wait()
	c.unlock(their)
	c.unlock(got(c.t, lost))
}

// heartbeatsSent is how many heartbeats locker's client has sent.
func (c *contractRig) heartbeatsSent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heartbeats
}

// Whatever nobody tells, a heartbeat finds out, and until then nothing else is sent; but
// whoever has lost its place enters once more.
func fairFound(c *contractRig) {
	nobody := "00000000-0000-4000-8000-000000000000:01"
	for name, f := range map[string]struct {
		do   func(key string, holder *holdfast.Lease)
		anew bool // places are lost, and waiters enter anew
	}{
		"expired holder": {func(key string, _ *holdfast.Lease) { c.server.Do(c.t, "PEXPIRE", key, "1") }, false},
		"dead head, free lock": {func(key string, _ *holdfast.Lease) {
			c.server.Do(c.t, "EVAL", "redis.call('LPUSH', KEYS[2], ARGV[1]) redis.call('DEL', KEYS[1])", "2", key, queueOf(key), nobody)
		}, false},
		"deleted queue": {func(key string, holder *holdfast.Lease) {
			c.server.Do(c.t, "DEL", queueOf(key))
			c.unlock(holder)
		}, true},
		"FLUSHALL": {func(string, *holdfast.Lease) { c.server.Do(c.t, "FLUSHALL") }, true},
	} {
		holder := lock(c.t, c.other, c.ctx, name)
		served := make(chan acquired, 2)
		for range cap(served) {
			w := c.inQueue(c.locker, name)
			go func() { served <- <-w }()
		}
		c.commands()
		before := c.heartbeatsSent()
		f.do(name, holder)
		l := got(c.t, served)
		// One may have been on its way; after one that finds a place lost comes one that looks for all.
		require.LessOrEqual(c.t, c.heartbeatsSent()-before, 3, name)
		for _, sent := range c.commands() {
			fine := f.anew && (sent == "enter" || sent == "clean_up") || sent == "unsubscribe" // of the last key
			require.True(c.t, fine, "%s: %s", name, sent)
		}
		c.unlock(l)
		c.unlock(got(c.t, served))
	}
}

// The message of a grant is held up until the first lease is over and another has
// the key. Whoever hears it then, and has not heard by a heartbeat that it has lost its
// place, must not believe it, and waits on.
func fairLateGrant(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	late := c.inQueue(c.locker, "k")
	heartbeats, _ := holding("heartbeat")
	c.proxy.OnReply(heartbeats)
	c.proxy.HoldReplies(true)
	c.unlock(their)
	require.Empty(c.t, queued(c.t, c.server, "k"), "it is granted")
	rival := lock(c.t, c.other, c.ctx, "k")
	c.proxy.HoldReplies(false)
	await(c.t, func() bool { return slices.Contains(c.noted(), "confirm") || len(late) > 0 })
	c.proxy.OnReply(nil)
	c.proxy.Release()
	await(c.t, func() bool { return len(queued(c.t, c.server, "k")) == 1 || len(late) > 0 })
	require.Empty(c.t, late, "two holders")
	c.lives(rival)
	c.unlock(rival)
	c.unlock(got(c.t, late))
}

// Two keys whose queues were one would grant each other's waiters.
func fairOtherKey(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	first, second := c.inQueue(c.locker, "k"), c.inQueue(c.locker, "k")
	owners := queued(c.t, c.server, "k")
	say := func(owner, of string) {
		c.server.Do(c.t, "PUBLISH", inboxOf("k", owner), fmt.Sprintf("%s %d 0 0%s", owner, long.Milliseconds(), of))
	}
	say(owners[0], " for {k}")
	say(owners[0], "")
	say(owners[1], " for k") // comes after
	got(c.t, second)
	require.Empty(c.t, first, "two holders")
	c.unlock(their)
	c.unlock(got(c.t, first))
}

// A grant that was taken back by ForceUnlock may be heard after that of the next, which
// came with an answer, on another connection: it is asked for.
func fairOvertaken(c *contractRig) {
	mine := lock(c.t, c.locker, c.ctx, "k")
	waiting := c.inQueue(c.locker, "k")
	owner := queued(c.t, c.server, "k")[0]
	c.server.Do(c.t, "PUBLISH", inboxOf("k", owner), fmt.Sprintf("%s %d 0 0 for k", owner, long.Milliseconds()))
	await(c.t, func() bool { return slices.Contains(c.noted(), "confirm") || len(waiting) > 0 })
	require.Empty(c.t, waiting, "two holders")
	c.lives(mine)
	c.unlock(mine)
	c.unlock(got(c.t, waiting))
}

// A key that is free for a moment belongs to whoever waits for it, though it cannot
// be told just now.
func fairTryLock(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	waiting := c.inQueue(c.locker, "k")
	c.away()
	await(c.t, func() bool { return listeners(c.t, c.server, inboxOf("k", queued(c.t, c.server, "k")[0])) == 0 })
	c.unlock(their)
	c.free("k")
	_, err := c.other.TryLock(c.ctx, "k")
	require.ErrorIs(c.t, err, holdfast.ErrNotAcquired)
	c.proxy.Refuse(false)
	c.unlock(got(c.t, waiting))
	require.NoError(c.t, c.other.Do(c.ctx, "k", func(context.Context) error { return nil }))
}

// Who has entered between two of a client has its turn between them.
func fairRunEnds(c *contractRig) {
	holder := lock(c.t, c.locker, c.ctx, "k")
	first, second := c.inQueue(c.locker, "k"), c.inQueue(c.locker, "k")
	their := c.inQueue(c.other, "k")
	last := c.inQueue(c.locker, "k")
	owners := []string{}
	for _, w := range []<-chan acquired{first, second, their, last} {
		c.unlock(holder)
		holder = got(c.t, w)
		owners = append(owners, holder.Owner())
	}
	require.Equal(c.t, owners[0], owners[1], "of one run")
	require.NotEqual(c.t, owners[0], owners[3])
	c.unlock(holder)
}

package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Redis answers some calls of a queue, and others not: each waiter is told, or goes
// on, by the calls that matter to it.

func init() {
	register("F16_NobodyCanEnter", testNobodyCanEnter, fairOnly)
	register("F16_NobodyCanLeave", testNobodyCanLeave, fairOnly)
	register("F16_EnterTriedAgainSoon", testEnterAgainSoon, fairOnly)
	register("F4_CancelledEnterIsNoOutage", testCancelledEnter, fairOnly)
	register("F16_OutageEndsWhenNobodyEnters", testOutageEnds, fairOnly)
	register("F18_LookUnanswered", testLookUnanswered, fairOnly)
	register("F18_ClosedWhileConfirming", testClosedWhileConfirming, fairOnly)
	register("F24_QueueDeletedBehindOneThatEntersAgain", testRejoinedAndDeleted, fairOnly)
	register("F3_HeartbeatsComeThoughSilenceMayBeLong", testHeartbeatsInTime, fairOnly)
	register("F17_HeartbeatsOfManyKeysComeAtOnce", testManyHeartbeatsAtOnce, fairOnly)
	register("F15_PlaceLostInALongSilence", testLostInSilence, fairOnly)
}

// cutBetweenHeartbeats cuts all commands of that verb, and counts them; each when a
// heartbeat was answered since the one before. Otherwise they would take the heartbeats with
// them, on a machine that is slow to connect again.
func cutBetweenHeartbeats(w *locktest.Proxies, name string) (seen *atomic.Int64) {
	seen = new(atomic.Int64)
	answered := make(chan struct{}, 1)
	loop.Poke(answered)
	w.OnReply(seeing(locktest.Is("heartbeat"), func() { loop.Poke(answered) }))
	w.OnRequest(when(locktest.Is(name), func() redistest.Verdict {
		seen.Add(1)
		select {
		case <-answered:
		case <-time.After(time.Second): // it is behind this one
		}
		return redistest.Cut
	}))
	return seen
}

// No enter is answered for longer than a wait may last without Redis, while heartbeats are.
// A caller that cannot enter gets the error; a waiter in the queue waits on.
func testNobodyCanEnter(t *testing.T, k locktest.Kind) {
	const outage = 4 * time.Second // the cuts cost some heartbeats as well, but not all of it
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: time.Second, MaxOutage: ptr(outage)})
	before, waiting := r.heldAndWanted("k")
	r.Answered("k")
	cutBetweenHeartbeats(r.Proxy, "enter")
	began := time.Now()
	a := locktest.Within(t, locktest.GoLock(r.Locker, locktest.Bounded(t), "k"))
	locktest.RequireSentinel(t, a.Err, holdfast.ErrUnknown)
	require.GreaterOrEqual(t, time.Since(began), outage)
	require.Empty(t, waiting)
	r.Proxy.OnRequest(nil)
	r.passesOn(before, waiting)
}

// The same while no leave is answered, and so no waiter enters.
func testNobodyCanLeave(t *testing.T, k locktest.Kind) {
	// The cuts cost some heartbeats as well, but not all of five seconds.
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: 2 * time.Second, MaxOutage: ptr(5 * time.Second)})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	leave := r.leaver("k", 1)
	waiting := r.InQueue(locktest.Bounded(t), "k", 2)
	r.Answered("k")
	seen := cutBetweenHeartbeats(r.Proxy, "give_up")
	leave()
	locktest.Await(t, func() bool { return seen.Load() == 10 }) // it pauses for half a second now
	time.Sleep(100 * time.Millisecond)                          // the last cut is known here too, which no event tells
	late := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return len(late) == 1 || len(locktest.Queued(t, r.Server, "k")) == 3 })
	require.Len(t, late, 1, "it has entered")
	locktest.RequireSentinel(t, (<-late).Err, holdfast.ErrUnknown)
	require.Less(t, seen.Load(), int64(30), "it is tried without a pause")
	require.Empty(t, waiting)
	r.Proxy.OnRequest(nil)
	r.passesOn(before, waiting)
}

// An enter whose connection is reset is tried again within milliseconds, and not only with
// the next heartbeat.
func testEnterAgainSoon(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: locktest.Long})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	waits := []<-chan locktest.Acquired{r.InQueue(locktest.Bounded(t), "k", 1)}
	soonest := time.Minute
	for range 5 {
		cut := cutRequest(r.Proxy, "enter")
		waiting := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
		locktest.Within(t, cut)
		began := time.Now()
		waits = append(waits, waiting)
		locktest.Await(t, func() bool { return len(locktest.Queued(t, r.Server, "k")) == len(waits) })
		soonest = min(soonest, time.Since(began))
	}
	require.Less(t, soonest, 400*time.Millisecond)
	r.passesOn(before, waits...)
}

// One that gives up while it enters says nothing about Redis: the others wait on,
// though they may not outlast any failure.
func testCancelledEnter(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: locktest.Long, MaxOutage: ptr(time.Duration(0))})
	before, waiting := r.heldAndWanted("k")
	held := r.holdRequests("enter")
	ctx, cancel := context.WithCancel(locktest.Bounded(t))
	going := locktest.GoLock(r.Locker, ctx, "k")
	locktest.Within(t, held)
	cancel()
	a := locktest.Within(t, going)
	locktest.RequireSentinel(t, a.Err, holdfast.ErrNotAcquired)
	require.ErrorIs(t, a.Err, context.Canceled)
	r.letGo()
	require.Empty(t, waiting)
	r.passesOn(before, waiting)
}

// No enter is answered until no waiter wants to enter any more, so none shows the end of
// the outage; an answered leave does. Later callers do not get the error.
func testOutageEnds(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: locktest.Long})
	before, waiting := r.heldAndWanted("k")
	says := func(what error) bool {
		return errors.Is(locktest.ErrOf(r.Locker.TryLock(locktest.Bounded(t), "k")), what)
	}
	r.Proxy.OnRequest(always(locktest.Is("enter"), redistest.Cut))
	ctx, cancel := context.WithCancel(locktest.Bounded(t))
	going := locktest.GoLock(r.Locker, ctx, "k")
	locktest.Await(t, func() bool { return says(holdfast.ErrUnknown) })
	cancel()
	locktest.RequireSentinel(t, locktest.Within(t, going).Err, holdfast.ErrUnknown)
	locktest.Await(t, func() bool { return says(holdfast.ErrNotAcquired) })

	held := r.holdRequests("enter")
	ctx, cancel = context.WithCancel(locktest.Bounded(t))
	going = locktest.GoLock(r.Locker, ctx, "k")
	locktest.Within(t, held)
	cancel()
	locktest.RequireSentinel(t, locktest.Within(t, going).Err, holdfast.ErrNotAcquired)
	r.letGo()
	r.passesOn(before, waiting)
}

// An unanswered heartbeat keeps no waiter from leaving for longer than any other call,
// however long silent clients count as alive.
func testLookUnanswered(t *testing.T, k locktest.Kind) {
	const lease = 3 * time.Second
	r := newHarness(t, k, locktest.Options{Lease: lease, WaiterTTL: locktest.Long, GrantLease: locktest.Long})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	leave := r.leaver("k", 1)
	lost := dropReplies(r.Proxy, "heartbeat")
	r.Server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub") // a heartbeat follows when the inbox is live again
	locktest.Within(t, lost)
	leave()
	began := time.Now()
	r.AwaitQueue("k", 0)
	require.Less(t, time.Since(began), 2*lease)
	r.passesOn(before)
}

// Close does not wait for the next heartbeat, which may be far, when one of its waiters
// has a grant that Redis does not confirm.
func testClosedWhileConfirming(t *testing.T, k locktest.Kind) {
	const lease = 3 * time.Second
	r := newHarness(t, k, locktest.Options{Lease: lease, WaiterTTL: 10 * locktest.Long, GrantLease: 10 * locktest.Long})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	waiting := r.InQueue(locktest.Bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	behind := r.InQueue(locktest.Bounded(t), "k", 2)
	held := r.holdReplies("confirm")
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	locktest.Within(t, held)
	closed := locktest.Go(r.Locker.Close)
	require.ErrorIs(t, locktest.Within(t, behind).Err, holdfast.ErrClosed)
	r.letGo()
	require.NoError(t, locktest.Within(t, closed))
	require.ErrorIs(t, locktest.Within(t, waiting).Err, holdfast.ErrClosed)
	r.Tidy("k")
}

// One has lost its turn, and enters again while the queue is deleted. The next heartbeats
// find that the other has lost its place, though the one that was first has not.
func testRejoinedAndDeleted(t *testing.T, k locktest.Kind) {
	const waiterTTL = 2 * time.Second
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: waiterTTL, GrantLease: waiterTTL})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	turn := r.InQueue(locktest.Bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	rival := r.OtherInQueue("k", 2)
	behind := r.InQueue(locktest.Bounded(t), "k", 3)

	r.Proxy.OnRequest(always(locktest.Is("confirm"), redistest.Cut))
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	l := locktest.Got(t, rival) // the grant lease is over
	entering := r.holdRequests("enter")
	locktest.Within(t, entering)
	require.Len(t, locktest.Queued(t, r.Server, "k"), 1)
	r.Server.Do(t, "DEL", locktest.QueueOf("k"))
	r.letGo()
	began := time.Now()
	r.AwaitQueue("k", 2)
	require.Less(t, time.Since(began), 2*waiterTTL, "it took more than heartbeats")
	r.passesOn(l, turn, behind)
}

// What heartbeats have to do for clients that are silent for long, or may be.

// Java drops a waiter with a score that has not moved for half a minute, however long our
// own clients may be silent.
func testHeartbeatsInTime(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: 10 * locktest.Long, GrantLease: 10 * locktest.Long})
	before, waiting := r.heldAndWanted("k")
	count := r.counting()
	locktest.Await(t, func() bool { return count("heartbeat") >= 2 })
	r.passesOn(before, waiting)
}

// A client is cut off for so long that it counts as dead. Of its two waiters, the one
// that came later is dropped, as it entered first: the first heartbeat that is answered
// finds that out, though the other still has its place.
func testLostInSilence(t *testing.T, k locktest.Kind) {
	const waiterTTL = time.Second
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, WaiterTTL: waiterTTL})
	other := k.Open(t, r.Server.Client(t), locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, WaiterTTL: locktest.Long})
	before := locktest.Lock(t, other, locktest.Bounded(t), "k")
	require.NoError(t, locktest.Cycle(r.Locker, locktest.Bounded(t), "connected"))
	held := r.holdReplies("acquire")
	first := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
	locktest.Within(t, held)
	second := r.InQueue(locktest.Bounded(t), "k", 1)
	between := locktest.GoLock(other, locktest.Bounded(t), "k")
	r.AwaitQueue("k", 2)
	r.letGo()
	r.AwaitQueue("k", 3)
	place := locktest.Queued(t, r.Server, "k")[2]
	count := r.counting()
	locktest.Await(t, func() bool { return count("heartbeat") >= 2 }) // of the second at least all is known

	r.cutOff()
	time.Sleep(2 * waiterTTL) // no call under way is older than the silence
	l := locktest.Next(t, before, between)
	require.Equal(t, []string{place}, locktest.Queued(t, r.Server, "k"))
	var answered atomic.Int64
	r.Proxy.OnReply(seeing(locktest.Is("heartbeat"), func() { answered.Add(1) }))
	r.Proxy.Refuse(false)
	r.AwaitQueue("k", 2)
	require.Less(t, answered.Load(), int64(15), "not before the scores are moved on")
	r.passesOn(l, first, second)
}

// Over a link that is so slow that calls one after another would be late, those for
// many keys are all under way at once.
func testManyHeartbeatsAtOnce(t *testing.T, k locktest.Kind) {
	const keys, waiterTTL = 120, 15 * time.Second
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: waiterTTL, GrantLease: locktest.Long})
	names := make(map[string]bool)
	for i := range keys {
		key := fmt.Sprint("key", i)
		names[key] = true
		locktest.Lock(t, r.Other, locktest.Bounded(t), key)
		locktest.GoLock(r.Locker, t.Context(), key)
	}
	for key := range names {
		r.AwaitQueue(key, 1)
	}
	time.Sleep(waiterTTL / 8) // a waiter that has just entered needs no heartbeat
	var mu sync.Mutex
	heartbeatsSent := map[string]bool{}
	r.Proxy.OnReply(always(locktest.Is("heartbeat"), redistest.Hold))
	began := make(chan struct{}, 1)
	r.Proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if locktest.Verb(cmd) == "heartbeat" {
			mu.Lock()
			defer mu.Unlock()
			for _, word := range cmd {
				if names[word] {
					heartbeatsSent[word] = true
				}
			}
			loop.Poke(began)
		}
		return redistest.Pass
	})
	locktest.Within(t, began)
	first := time.Now()
	locktest.Await(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heartbeatsSent) == keys
	})
	require.Less(t, time.Since(first), 5*time.Second, "one waits for the answer to another, which may take as long")
	r.letGo()
}

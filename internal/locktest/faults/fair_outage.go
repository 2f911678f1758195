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
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Redis answers some calls of a line, and others not: each waiter is told, or goes
// on, by the calls that matter to it.

func init() {
	registerFair("F16_NobodyCanEnter", testNobodyCanEnter)
	registerFair("F16_NobodyCanLeave", testNobodyCanLeave)
	registerFair("F16_EnterTriedAgainSoon", testEnterAgainSoon)
	registerFair("F4_CancelledEnterIsNoOutage", testCancelledEnter)
	registerFair("F16_OutageEndsWhenNobodyEnters", testOutageEnds)
	registerFair("F18_LookUnanswered", testLookUnanswered)
	registerFair("F18_ClosedWhileConfirming", testClosedWhileConfirming)
	registerFair("F24_QueueDeletedBehindOneThatEntersAgain", testRejoinedAndDeleted)
	registerFair("F3_HeartbeatsComeThoughSilenceMayBeLong", testHeartbeatsInTime)
	registerFair("F17_HeartbeatsOfManyKeysComeAtOnce", testManyHeartbeatsAtOnce)
	registerFair("F15_PlaceLostInALongSilence", testLostInSilence)
}

// cutBetweenHeartbeats cuts all commands of that verb, and counts them; each when a
// heartbeat was answered since the one before. Else they would take the heartbeats with
// them, on a machine that is slow to connect again.
func cutBetweenHeartbeats(w *Proxies, name string) (seen *atomic.Int64) {
	seen = new(atomic.Int64)
	answered := make(chan struct{}, 1)
	Poke(answered)
	w.OnReply(seeing(Is("heartbeat"), func() { Poke(answered) }))
	w.OnRequest(when(Is(name), func() redistest.Verdict {
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
func testNobodyCanEnter(t *testing.T, d Kind) {
	const outage = 4 * time.Second // the cuts cost some heartbeats as well, but not all of it
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: time.Second, MaxOutage: ptr(outage)})
	before := Lock(t, r.Other, Bounded(t), "k")
	waiting := r.InLine(Bounded(t), "k", 1)
	r.Answered("k")
	cutBetweenHeartbeats(r.Proxy, "enter")
	began := time.Now()
	a := Within(t, GoLock(r.Locker, Bounded(t), "k"))
	RequireSentinel(t, a.Err, holdfast.ErrUnknown)
	require.GreaterOrEqual(t, time.Since(began), outage)
	require.Empty(t, waiting)
	r.Proxy.OnRequest(nil)
	r.passesOn(before, waiting)
}

// The same while no leave is answered, and so no waiter enters.
func testNobodyCanLeave(t *testing.T, d Kind) {
	// The cuts cost some heartbeats as well, but not all of five seconds.
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: 2 * time.Second, MaxOutage: ptr(5 * time.Second)})
	before := Lock(t, r.Other, Bounded(t), "k")
	leave := r.leaver("k", 1)
	waiting := r.InLine(Bounded(t), "k", 2)
	r.Answered("k")
	seen := cutBetweenHeartbeats(r.Proxy, "clean_up")
	leave()
	Await(t, func() bool { return seen.Load() == 10 }) // it pauses for half a second now
	time.Sleep(100 * time.Millisecond)                 // the last cut is known here too, which no event tells
	late := GoLock(r.Locker, Bounded(t), "k")
	Await(t, func() bool { return len(late) == 1 || len(Queued(t, r.Server, "k")) == 3 })
	require.Len(t, late, 1, "it has entered")
	RequireSentinel(t, (<-late).Err, holdfast.ErrUnknown)
	require.Less(t, seen.Load(), int64(30), "it is tried without a pause")
	require.Empty(t, waiting)
	r.Proxy.OnRequest(nil)
	r.passesOn(before, waiting)
}

// An enter whose connection is reset is tried again within milliseconds, not when
// the line happens to look.
func testEnterAgainSoon(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: Long})
	before := Lock(t, r.Other, Bounded(t), "k")
	waits := []<-chan Acquired{r.InLine(Bounded(t), "k", 1)}
	soonest := time.Minute
	for range 5 {
		cut := cutRequest(r.Proxy, "enter")
		waiting := GoLock(r.Locker, Bounded(t), "k")
		Within(t, cut)
		began := time.Now()
		waits = append(waits, waiting)
		Await(t, func() bool { return len(Queued(t, r.Server, "k")) == len(waits) })
		soonest = min(soonest, time.Since(began))
	}
	require.Less(t, soonest, 400*time.Millisecond)
	r.passesOn(before, waits...)
}

// One that gives up while it enters says nothing about Redis: the others wait on,
// though they may not outlast any failure.
func testCancelledEnter(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: Long, MaxOutage: ptr(time.Duration(0))})
	before := Lock(t, r.Other, Bounded(t), "k")
	waiting := r.InLine(Bounded(t), "k", 1)
	held := r.holdRequests("enter")
	ctx, cancel := context.WithCancel(Bounded(t))
	going := GoLock(r.Locker, ctx, "k")
	Within(t, held)
	cancel()
	a := Within(t, going)
	RequireSentinel(t, a.Err, holdfast.ErrNotAcquired)
	require.ErrorIs(t, a.Err, context.Canceled)
	r.letGo()
	require.Empty(t, waiting)
	r.passesOn(before, waiting)
}

// No enter is answered until no waiter wants to enter any more, so none shows the end of
// the outage; an answered leave does. Later callers do not get the error.
func testOutageEnds(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: Long})
	before := Lock(t, r.Other, Bounded(t), "k")
	waiting := r.InLine(Bounded(t), "k", 1)
	says := func(what error) bool {
		_, err := r.Locker.TryLock(Bounded(t), "k")
		return errors.Is(err, what)
	}
	r.Proxy.OnRequest(always(Is("enter"), redistest.Cut))
	ctx, cancel := context.WithCancel(Bounded(t))
	going := GoLock(r.Locker, ctx, "k")
	Await(t, func() bool { return says(holdfast.ErrUnknown) })
	cancel()
	RequireSentinel(t, Within(t, going).Err, holdfast.ErrUnknown)
	Await(t, func() bool { return says(holdfast.ErrNotAcquired) })

	held := r.holdRequests("enter")
	ctx, cancel = context.WithCancel(Bounded(t))
	going = GoLock(r.Locker, ctx, "k")
	Within(t, held)
	cancel()
	RequireSentinel(t, Within(t, going).Err, holdfast.ErrNotAcquired)
	r.letGo()
	r.passesOn(before, waiting)
}

// An unanswered heartbeat keeps no waiter from leaving for longer than any other call,
// however long silent clients count as alive.
func testLookUnanswered(t *testing.T, d Kind) {
	const lease = 3 * time.Second
	r := newHarness(t, d, Options{Lease: lease, WaiterTTL: Long, GrantLease: Long})
	before := Lock(t, r.Other, Bounded(t), "k")
	leave := r.leaver("k", 1)
	lost := dropReplies(r.Proxy, "heartbeat")
	r.Server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub") // the line looks when it hears again
	Within(t, lost)
	leave()
	began := time.Now()
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 0 })
	require.Less(t, time.Since(began), 2*lease)
	r.passesOn(before)
}

// Close does not wait for the next heartbeat, which may be far, when one of its waiters
// has a grant that Redis does not confirm.
func testClosedWhileConfirming(t *testing.T, d Kind) {
	const lease = 3 * time.Second
	r := newHarness(t, d, Options{Lease: lease, WaiterTTL: 10 * Long, GrantLease: 10 * Long})
	before := Lock(t, r.Other, Bounded(t), "k")
	waiting := r.InLine(Bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	behind := r.InLine(Bounded(t), "k", 2)
	held := r.holdReplies("confirm")
	require.NoError(t, before.Unlock(Bounded(t)))
	Within(t, held)
	closed := make(chan error, 1)
	go func() { closed <- r.Locker.Close() }()
	require.ErrorIs(t, Within(t, behind).Err, holdfast.ErrClosed)
	r.letGo()
	require.NoError(t, Within(t, closed))
	require.ErrorIs(t, Within(t, waiting).Err, holdfast.ErrClosed)
	r.Tidy("k")
}

// One has lost its turn, and enters again while the queue is deleted. The next heartbeats
// find that the other has lost its place, though the one that was first has not.
func testRejoinedAndDeleted(t *testing.T, d Kind) {
	const stale = 2 * time.Second
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: stale, GrantLease: stale})
	before := Lock(t, r.Other, Bounded(t), "k")
	turn := r.InLine(Bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	rival := GoLock(r.Other, Bounded(t), "k")
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 2 })
	behind := r.InLine(Bounded(t), "k", 3)

	r.Proxy.OnRequest(always(Is("confirm"), redistest.Cut))
	require.NoError(t, before.Unlock(Bounded(t)))
	l := Got(t, rival) // the grant lease is over
	entering := r.holdRequests("enter")
	Within(t, entering)
	require.Len(t, Queued(t, r.Server, "k"), 1)
	r.Server.Do(t, "DEL", QueueOf("k"))
	r.letGo()
	began := time.Now()
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 2 })
	require.Less(t, time.Since(began), 2*stale, "it took more than heartbeats")
	r.passesOn(l, turn, behind)
}

// What heartbeats have to do for clients that are silent for long, or may be.

// Java drops a waiter with a score that has not moved for half a minute, however long our
// own clients may be silent.
func testHeartbeatsInTime(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: 10 * Long, GrantLease: 10 * Long})
	before := Lock(t, r.Other, Bounded(t), "k")
	waiting := r.InLine(Bounded(t), "k", 1)
	count := r.counting()
	Await(t, func() bool { return count("heartbeat") >= 2 })
	r.passesOn(before, waiting)
}

// A client is cut off for so long that it counts as dead. Of its two waiters, the one
// that came later is dropped, as it entered first: the first heartbeat that is answered
// finds that out, though the other still has its place.
func testLostInSilence(t *testing.T, d Kind) {
	const stale = time.Second
	r := newHarness(t, d, Options{Lease: Long, GrantLease: Long, WaiterTTL: stale})
	other := d.Open(t, r.Server.Client(t), Options{Lease: Long, GrantLease: Long, WaiterTTL: Long})
	before := Lock(t, other, Bounded(t), "k")
	require.NoError(t, Lock(t, r.Locker, Bounded(t), "connected").Unlock(Bounded(t)))
	held := r.holdReplies("acquire")
	first := GoLock(r.Locker, Bounded(t), "k")
	Within(t, held)
	second := r.InLine(Bounded(t), "k", 1)
	between := GoLock(other, Bounded(t), "k")
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 2 })
	r.letGo()
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 3 })
	place := Queued(t, r.Server, "k")[2]
	count := r.counting()
	Await(t, func() bool { return count("heartbeat") >= 2 }) // of the second at least all is known

	r.cutOff()
	time.Sleep(2 * stale) // no call under way is older than the silence
	require.NoError(t, before.Unlock(Bounded(t)))
	l := Got(t, between)
	require.Equal(t, []string{place}, Queued(t, r.Server, "k"))
	var answered atomic.Int64
	r.Proxy.OnReply(seeing(Is("heartbeat"), func() { answered.Add(1) }))
	r.Proxy.Refuse(false)
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 2 })
	require.Less(t, answered.Load(), int64(15), "not before the scores are moved on")
	r.passesOn(l, first, second)
}

// Over a link that is so slow that calls one after another would be late, those for
// many keys are all under way at once.
func testManyHeartbeatsAtOnce(t *testing.T, d Kind) {
	const keys, stale = 120, 15 * time.Second
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: stale, GrantLease: Long})
	names := make(map[string]bool)
	for i := range keys {
		key := fmt.Sprint("key", i)
		names[key] = true
		Lock(t, r.Other, Bounded(t), key)
		GoLock(r.Locker, t.Context(), key)
	}
	for key := range names {
		Await(t, func() bool { return len(Queued(t, r.Server, key)) == 1 })
	}
	time.Sleep(stale / 8) // a waiter that has just entered needs no heartbeat
	var mu sync.Mutex
	heartbeatsSent := map[string]bool{}
	r.Proxy.OnReply(always(Is("heartbeat"), redistest.Hold))
	began := make(chan struct{}, 1)
	r.Proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if Verb(cmd) == "heartbeat" {
			mu.Lock()
			defer mu.Unlock()
			for _, word := range cmd {
				if names[word] {
					heartbeatsSent[word] = true
				}
			}
			Poke(began)
		}
		return redistest.Pass
	})
	Within(t, began)
	first := time.Now()
	Await(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heartbeatsSent) == keys
	})
	require.Less(t, time.Since(first), 5*time.Second, "one waits for the answer to another, which may take as long")
	r.letGo()
}

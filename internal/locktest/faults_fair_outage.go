package locktest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
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
}

// every gives a verdict on all commands of that verb, and counts them.
func every(name string, v redistest.Verdict) (hook redistest.Hook, seen *atomic.Int64) {
	seen = new(atomic.Int64)
	return func(cmd []string) redistest.Verdict {
		if verb(cmd) != name {
			return redistest.Pass
		}
		seen.Add(1)
		return v
	}, seen
}

// No enter is answered for longer than a wait may last without Redis, while heartbeats
// are. Who cannot enter is told so; who waits in the queue waits on.
func testNobodyCanEnter(t *testing.T, d Kind) {
	const outage = 4 * time.Second // the cuts cost some heartbeats as well, but not all of it
	r := newFaultRig(t, d, Options{Lease: long, Stale: time.Second, MaxOutage: ptr(outage)})
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1)
	r.answered("k")
	hook, _ := every("enter", redistest.Cut)
	r.proxy.OnRequest(hook)
	began := time.Now()
	a := within(t, lockAside(r.locker, bounded(t), "k"))
	requireSentinel(t, a.err, holdfast.ErrUnknown)
	require.GreaterOrEqual(t, time.Since(began), outage)
	require.Empty(t, waiting)
	r.proxy.OnRequest(nil)
	require.NoError(t, before.Unlock(bounded(t)))
	require.NoError(t, got(t, waiting).Unlock(bounded(t)))
	r.tidy("k")
}

// No leave is answered, and until then nobody enters: the same.
func testNobodyCanLeave(t *testing.T, d Kind) {
	// The cuts cost some heartbeats as well, but not all of five seconds.
	r := newFaultRig(t, d, Options{Lease: long, Stale: 2 * time.Second, MaxOutage: ptr(5 * time.Second)})
	before := lock(t, r.other, bounded(t), "k")
	ctx, cancel := context.WithCancel(bounded(t))
	leaving := r.inLine(ctx, "k", 1)
	waiting := r.inLine(bounded(t), "k", 2)
	r.answered("k")
	hook, seen := every("clean_up", redistest.Cut)
	r.proxy.OnRequest(hook)
	cancel()
	require.ErrorIs(t, within(t, leaving).err, context.Canceled)
	await(t, func() bool { return seen.Load() == 10 }) // it pauses for half a second now
	time.Sleep(100 * time.Millisecond)
	late := lockAside(r.locker, bounded(t), "k")
	await(t, func() bool { return len(late) == 1 || len(queued(t, r.server, "k")) == 3 })
	require.Len(t, late, 1, "it has entered")
	requireSentinel(t, (<-late).err, holdfast.ErrUnknown)
	require.Less(t, seen.Load(), int64(30), "it is tried without a pause")
	require.Empty(t, waiting)
	r.proxy.OnRequest(nil)
	require.NoError(t, before.Unlock(bounded(t)))
	require.NoError(t, got(t, waiting).Unlock(bounded(t)))
	r.tidy("k")
}

// An enter whose connection is reset is tried again within milliseconds, not when
// the line happens to look.
func testEnterAgainSoon(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, Stale: long})
	before := lock(t, r.other, bounded(t), "k")
	waits := []<-chan acquired{r.inLine(bounded(t), "k", 1)}
	soonest := time.Minute
	for range 5 {
		cut := cutRequest(r.proxy, "enter")
		waiting := lockAside(r.locker, bounded(t), "k")
		within(t, cut)
		began := time.Now()
		waits = append(waits, waiting)
		await(t, func() bool { return len(queued(t, r.server, "k")) == len(waits) })
		soonest = min(soonest, time.Since(began))
	}
	require.Less(t, soonest, 400*time.Millisecond)
	require.NoError(t, before.Unlock(bounded(t)))
	for _, w := range waits {
		require.NoError(t, got(t, w).Unlock(bounded(t)))
	}
	r.tidy("k")
}

// One that gives up while it enters says nothing about Redis: the others wait on,
// though they may not outlast any failure.
func testCancelledEnter(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, Stale: long, MaxOutage: ptr(time.Duration(0))})
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1)
	hook, held := holding("enter")
	r.proxy.OnRequest(hook)
	ctx, cancel := context.WithCancel(bounded(t))
	going := lockAside(r.locker, ctx, "k")
	within(t, held)
	cancel()
	a := within(t, going)
	requireSentinel(t, a.err, holdfast.ErrNotAcquired)
	require.ErrorIs(t, a.err, context.Canceled)
	r.proxy.OnRequest(nil)
	r.proxy.Release()
	require.Empty(t, waiting)
	require.NoError(t, before.Unlock(bounded(t)))
	require.NoError(t, got(t, waiting).Unlock(bounded(t)))
	r.tidy("k")
}

// No enter is answered until nobody wants to enter any more, so that none tells of
// the outage's end: that a leave is answered does. What comes later is not told of it.
func testOutageEnds(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, Stale: long})
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1)
	says := func(what error) bool {
		_, err := r.locker.TryLock(bounded(t), "k")
		return errors.Is(err, what)
	}
	hook, _ := every("enter", redistest.Cut)
	r.proxy.OnRequest(hook)
	ctx, cancel := context.WithCancel(bounded(t))
	going := lockAside(r.locker, ctx, "k")
	await(t, func() bool { return says(holdfast.ErrUnknown) })
	cancel()
	requireSentinel(t, within(t, going).err, holdfast.ErrUnknown)
	cancelled := time.Now()
	await(t, func() bool { return says(holdfast.ErrNotAcquired) })
	require.Less(t, time.Since(cancelled), 5*time.Second, "the next heartbeat has ended it")

	hook, held := holding("enter")
	r.proxy.OnRequest(hook)
	ctx, cancel = context.WithCancel(bounded(t))
	going = lockAside(r.locker, ctx, "k")
	within(t, held)
	cancel()
	requireSentinel(t, within(t, going).err, holdfast.ErrNotAcquired)
	r.proxy.OnRequest(nil)
	r.proxy.Release()
	require.NoError(t, before.Unlock(bounded(t)))
	require.NoError(t, got(t, waiting).Unlock(bounded(t)))
	r.tidy("k")
}

// A look that is not answered keeps nobody from leaving for longer than any call,
// however long silent clients are counted as alive.
func testLookUnanswered(t *testing.T, d Kind) {
	const lease = 3 * time.Second
	r := newFaultRig(t, d, Options{Lease: lease, Stale: long, FirstLease: long})
	before := lock(t, r.other, bounded(t), "k")
	ctx, cancel := context.WithCancel(bounded(t))
	leaving := r.inLine(ctx, "k", 1)
	lost := dropReplies(r.proxy, "heartbeat")
	r.server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub") // the line looks when it hears again
	within(t, lost)
	cancel()
	require.ErrorIs(t, within(t, leaving).err, context.Canceled)
	began := time.Now()
	await(t, func() bool { return len(queued(t, r.server, "k")) == 0 })
	require.Less(t, time.Since(began), 2*lease)
	require.NoError(t, before.Unlock(bounded(t)))
	r.tidy("k")
}

// Close does not wait for the next heartbeat, which may be far, when one of its waiters
// has a grant that Redis does not confirm.
func testClosedWhileConfirming(t *testing.T, d Kind) {
	const lease = 3 * time.Second
	r := newFaultRig(t, d, Options{Lease: lease, Stale: 10 * long, FirstLease: 10 * long})
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	behind := r.inLine(bounded(t), "k", 2)
	hook, held := holding("confirm")
	r.proxy.OnReply(hook)
	require.NoError(t, before.Unlock(bounded(t)))
	within(t, held)
	closed := make(chan error, 1)
	go func() { closed <- r.locker.Close() }()
	require.ErrorIs(t, within(t, behind).err, holdfast.ErrClosed)
	r.proxy.OnReply(nil)
	r.proxy.Release()
	require.NoError(t, within(t, closed))
	require.ErrorIs(t, within(t, waiting).err, holdfast.ErrClosed)
	r.tidy("k")
}

// One has lost its turn, and enters again while the queue is deleted. The next heartbeats
// find that the other has lost its place, though the one that was first has not.
func testRejoinedAndDeleted(t *testing.T, d Kind) {
	const stale = 2 * time.Second
	r := newFaultRig(t, d, Options{Lease: long, Stale: stale, FirstLease: stale})
	before := lock(t, r.other, bounded(t), "k")
	turn := r.inLine(bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	rival := lockAside(r.other, bounded(t), "k")
	await(t, func() bool { return len(queued(t, r.server, "k")) == 2 })
	behind := r.inLine(bounded(t), "k", 3)

	cut, _ := every("confirm", redistest.Cut)
	r.proxy.OnRequest(cut)
	require.NoError(t, before.Unlock(bounded(t)))
	l := got(t, rival) // the first lease is over
	hook, entering := holding("enter")
	r.proxy.OnRequest(hook)
	within(t, entering)
	require.Len(t, queued(t, r.server, "k"), 1)
	r.server.Do(t, "DEL", queueOf("k"))
	r.proxy.OnRequest(nil)
	r.proxy.Release()
	began := time.Now()
	await(t, func() bool { return len(queued(t, r.server, "k")) == 2 })
	require.Less(t, time.Since(began), 2*stale, "it took more than heartbeats")
	require.NoError(t, l.Unlock(bounded(t)))
	require.NoError(t, got(t, turn).Unlock(bounded(t)))
	require.NoError(t, got(t, behind).Unlock(bounded(t)))
	r.tidy("k")
}

package locktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What a grant may be trusted for, whatever was repeated, late or answered in
// between: each case fails when the rule that it is about is taken out.

func init() {
	registerFair("F6_RepeatedEnterMovesNoTrust", testRepeatedEnter)
	registerFair("F6_RepeatedReleaseServesNobody", testRepeatedRelease)
	registerFair("F6_HeartbeatsMoveNoTrust", testHeartbeatsMoveNoTrust)
	registerFair("F6_HeartbeatBetweenGrantAndMessage", testHeartbeatBeforeMessage)
	registerFair("F7_MessageForOneThatHasLeft", testMessageAfterLeave)
	registerFair("F7_GrantForOneThatWasServed", testGrantAfterTurn)
	registerFair("F7_MessageAfterTheLinesEnd", testMessageInNewLine)
	registerFair("F6_ForcedWhileConfirming", testForcedWhileConfirming)
}

// counting counts the locker's commands by their verbs, beginning now.
func (r *faultRig) counting() (count func(verb string) int) {
	var mu sync.Mutex
	seen := map[string]int{}
	r.proxy.OnRequest(func(cmd []string) redistest.Verdict {
		mu.Lock()
		defer mu.Unlock()
		seen[verb(cmd)]++
		return redistest.Pass
	})
	return func(verb string) int {
		mu.Lock()
		defer mu.Unlock()
		return seen[verb]
	}
}

// trustedInRedis requires that Redis gives key to nobody else before the lease's
// trusted deadline.
func (r *faultRig) trustedInRedis(l *holdfast.Lease) {
	r.t.Helper()
	require.Equal(r.t, l.Owner(), r.owner(l.Key()))
	deadline := l.Deadline()
	left := number(r.t, r.server, "PTTL", l.Key())
	require.False(r.t, deadline.After(time.Now().Add(time.Duration(left)*time.Millisecond)), "trusted beyond Redis")
}

// The answer to the first enter is lost, and the grant comes before the second, but
// is heard after it was sent: trust counts from the first.
func testRepeatedEnter(t *testing.T, d Kind) {
	const lease, later = 20 * time.Second, time.Second
	r, ear := newEarRig(t, d, Options{Lease: lease, FirstLease: lease, Stale: lease})
	before := lock(t, r.other, bounded(t), "k")
	first, granted, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
	sent := 0 // by one connection after the other
	r.proxy.OnReply(func(cmd []string) redistest.Verdict {
		if verb(cmd) != "enter" {
			return redistest.Pass
		}
		if sent++; sent == 1 {
			ear.hold()
			close(first)
			<-granted
			return redistest.Cut
		}
		close(second)
		return redistest.Hold
	})
	waiting := lockAside(r.locker, bounded(t), "k")
	within(t, first)
	require.NoError(t, before.Unlock(bounded(t)))
	time.Sleep(later) // by which the second attempt would move the deadline
	close(granted)
	within(t, second)
	ear.release()
	l := got(t, waiting)
	r.trustedInRedis(l)
	r.proxy.OnReply(nil)
	r.proxy.Release()
	require.NoError(t, l.Unlock(bounded(t)))
	r.tidy("k")
}

// The answer to a release is lost, and with it the grant to the next. The release is
// repeated: it neither serves the one after, nor does it bring the grant once more,
// which a heartbeat finds.
func testRepeatedRelease(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, FirstLease: long, Stale: long})
	l := lock(t, r.locker, bounded(t), "k")
	next := r.inLine(bounded(t), "k", 1)
	behind := lockAside(r.other, bounded(t), "k")
	await(t, func() bool { return len(queued(t, r.server, "k")) == 2 })
	count := r.counting()
	lost := r.proxy.SwallowReply(1, is("release"))
	require.NoError(t, l.Unlock(bounded(t)))
	within(t, lost)
	require.Equal(t, 2, count("release"))

	l = got(t, next)
	require.Equal(t, 1, count("confirm"))
	require.Equal(t, 1, r.entries("k"), "two holders")
	require.Len(t, queued(t, r.server, "k"), 1)
	require.Empty(t, behind)
	r.trustedInRedis(l)
	require.NoError(t, l.Unlock(bounded(t)))
	require.NoError(t, got(t, behind).Unlock(bounded(t)))
	r.tidy("k")
}

// A waiter that was there at many heartbeats is trusted from its enter all the same.
func testHeartbeatsMoveNoTrust(t *testing.T, d Kind) {
	const lease = 20 * time.Second
	r := newFaultRig(t, d, Options{Lease: lease, FirstLease: lease, Stale: time.Second})
	before := lock(t, r.other, bounded(t), "k")
	count := r.counting()
	waiting := r.inLine(bounded(t), "k", 1)
	entered := time.Now()
	await(t, func() bool { return count("heartbeat") >= 5 })
	require.NoError(t, before.Unlock(bounded(t)))
	l := got(t, waiting)
	require.Zero(t, count("confirm"))
	require.False(t, l.Deadline().After(entered.Add(lease)))
	require.NoError(t, l.Unlock(bounded(t)))
	r.tidy("k")
}

// A heartbeat finds the grant whose message is late. One call confirms it, and sets the
// lease; the message changes nothing any more.
func testHeartbeatBeforeMessage(t *testing.T, d Kind) {
	const first = 10 * time.Second
	r, ear := newEarRig(t, d, Options{Lease: long, FirstLease: first, Stale: time.Second})
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1)
	behind := r.inLine(bounded(t), "k", 2)
	count := r.counting()
	ear.hold()
	require.NoError(t, before.Unlock(bounded(t)))
	l := got(t, waiting)
	require.Equal(t, 1, count("confirm"))
	require.Greater(t, number(t, r.server, "PTTL", "k"), int(first.Milliseconds()))
	r.trustedInRedis(l)

	ear.release()
	heard := count("heartbeat") + 2
	await(t, func() bool { return count("heartbeat") >= heard })
	r.trustedInRedis(l)
	require.Zero(t, count("clean_up"))
	require.NoError(t, l.Unlock(bounded(t)))
	require.NoError(t, got(t, behind).Unlock(bounded(t)))
	r.tidy("k")
}

// Who was granted the key leaves before it hears. The key is the next one's, and the
// message is believed by nobody.
func testMessageAfterLeave(t *testing.T, d Kind) {
	r, ear := newEarRig(t, d, Options{Lease: long, FirstLease: long, Stale: time.Second})
	before := lock(t, r.other, bounded(t), "k")
	ctx, cancel := context.WithCancel(bounded(t))
	leaving := r.inLine(ctx, "k", 1)
	rival := lockAside(r.other, bounded(t), "k")
	await(t, func() bool { return len(queued(t, r.server, "k")) == 2 })
	last := r.inLine(bounded(t), "k", 3)
	count := r.counting()
	ear.hold()
	require.NoError(t, before.Unlock(bounded(t)))
	require.Len(t, queued(t, r.server, "k"), 2, "it is granted")
	cancel()
	require.ErrorIs(t, within(t, leaving).err, context.Canceled)
	l := got(t, rival)

	ear.release()
	heard := count("heartbeat") + 2
	await(t, func() bool { return count("heartbeat") >= heard })
	r.trustedInRedis(l)
	require.Empty(t, last)
	require.NoError(t, l.Unlock(bounded(t)))
	require.NoError(t, got(t, last).Unlock(bounded(t)))
	r.tidy("k")
}

// One that was served in a run stands in the queue until the run is over. If the key
// is taken away before, it is granted once more, though nobody waits: it is given
// back at once.
func testGrantAfterTurn(t *testing.T, d Kind) {
	const never = 10 * long
	r := newFaultRig(t, d, Options{Lease: never, FirstLease: never, Stale: never, Handover: ptr(long)})
	served := r.inRun(r.locker)
	last := r.inLine(bounded(t), "k", 2) // without a waiter, the locker would not hear
	behind := lockAside(r.other, bounded(t), "k")
	await(t, func() bool { return len(queued(t, r.server, "k")) == 3 })

	_, err := r.other.ForceUnlock(bounded(t), "k")
	require.NoError(t, err)
	require.NoError(t, got(t, last).Unlock(bounded(t)))
	require.NoError(t, got(t, behind).Unlock(bounded(t)))
	require.ErrorIs(t, served.Unlock(bounded(t)), holdfast.ErrLost)
	r.tidy("k")
}

// A grant is being confirmed while the key is taken away by force, and given to the
// next of the same locker, which hears first. Only that one has it.
func testForcedWhileConfirming(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, FirstLease: long, Stale: long})
	before := lock(t, r.other, bounded(t), "k")
	forced := r.inLine(bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	next := r.inLine(bounded(t), "k", 2)
	hook, held := holding("confirm")
	r.proxy.OnReply(hook)
	require.NoError(t, before.Unlock(bounded(t)))
	within(t, held)
	_, err := r.other.ForceUnlock(bounded(t), "k")
	require.NoError(t, err)
	l := got(t, next)
	r.proxy.OnReply(nil)
	r.proxy.Release()
	await(t, func() bool { return len(queued(t, r.server, "k")) == 1 || len(forced) == 1 })
	require.Empty(t, forced, "two holders")
	require.NoError(t, l.Err())
	r.trustedInRedis(l)
	require.NoError(t, l.Unlock(bounded(t)))
	require.NoError(t, got(t, forced).Unlock(bounded(t)))
	r.tidy("k")
}

// A heartbeat has found the grant, nobody else waited, and so nobody remembers it; then
// the message comes, and somebody else waits. The key stays the holder's.
func testMessageInNewLine(t *testing.T, d Kind) {
	r, ear := newEarRig(t, d, Options{Lease: long, FirstLease: long, Stale: time.Second})
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1)
	ear.hold()
	require.NoError(t, before.Unlock(bounded(t)))
	l := got(t, waiting)
	// The line ends after one to two seconds. Two more, and the connection, which does
	// not answer, would be given up, and the message with it.
	time.Sleep(2500 * time.Millisecond)
	ctx := &tellingContext{Context: bounded(t), waiting: make(chan struct{})}
	next := lockAside(r.locker, ctx, "k")
	within(t, ctx.waiting)

	ear.release()
	await(t, func() bool { return len(next) == 1 || len(queued(t, r.server, "k")) == 1 })
	require.Empty(t, next, "two holders")
	r.trustedInRedis(l)
	require.NoError(t, l.Unlock(bounded(t)))
	require.NoError(t, got(t, next).Unlock(bounded(t)))
	r.tidy("k")
}

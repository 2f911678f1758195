package faults

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// What a grant may be trusted for, whatever was repeated, late or answered in
// between: each case fails when the rule that it is about is taken out.

func init() {
	register("F6_RepeatedEnterMovesNoTrust", testRepeatedEnter, fairOnly)
	register("F6_RepeatedReleaseServesNobody", testRepeatedRelease, fairOnly)
	register("F6_HeartbeatsMoveNoTrust", testHeartbeatsMoveNoTrust, fairOnly)
	register("F6_HeartbeatBetweenGrantAndMessage", testHeartbeatBeforeMessage, fairOnly)
	register("F7_MessageForOneThatHasLeft", testMessageAfterLeave, fairOnly)
	register("F7_GrantForOneThatWasServed", testGrantAfterTurn, fairOnly)
	register("F7_MessageAfterTheQueuesEnd", testMessageInNewQueue, fairOnly)
	register("F6_ForcedWhileConfirming", testForcedWhileConfirming, fairOnly)
}

// counting counts the locker's commands by their verbs, beginning now.
func (r *harness) counting() (count func(verb string) int) {
	var mu sync.Mutex
	seen := map[string]int{}
	r.Proxy.OnRequest(func(cmd []string) redistest.Verdict {
		mu.Lock()
		defer mu.Unlock()
		seen[locktest.Verb(cmd)]++
		return redistest.Pass
	})
	return func(verb string) int {
		mu.Lock()
		defer mu.Unlock()
		return seen[verb]
	}
}

// trustedInRedis requires that Redis gives key to no other owner before the lease's trusted
// deadline.
func (r *harness) trustedInRedis(l *holdfast.Lease) {
	r.T.Helper()
	require.Equal(r.T, l.Owner(), r.Owner(l.Key()))
	deadline := l.Deadline()
	left := locktest.Number(r.T, r.Server, "PTTL", l.Key())
	require.False(r.T, deadline.After(time.Now().Add(time.Duration(left)*time.Millisecond)), "trusted beyond Redis")
}

// The answer to the first enter is lost, and the grant comes before the second, but
// is heard after it was sent: trust counts from the first.
func testRepeatedEnter(t *testing.T, k locktest.Kind) {
	const lease, later = 20 * time.Second, time.Second
	r, subscriber := withSubscriber(t, k, locktest.Options{Lease: lease, GrantLease: lease, WaiterTTL: lease})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	first, granted, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
	sent := 0 // by one connection after the other
	r.Proxy.OnReply(when(locktest.Is("enter"), func() redistest.Verdict {
		if sent++; sent == 1 {
			subscriber.hold()
			close(first)
			<-granted
			return redistest.Cut
		}
		close(second)
		return redistest.Hold
	}))
	waiting := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
	locktest.Within(t, first)
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	time.Sleep(later) // by which the second attempt would move the deadline
	close(granted)
	locktest.Within(t, second)
	subscriber.release()
	l := locktest.Got(t, waiting)
	r.trustedInRedis(l)
	r.letGo()
	r.passesOn(l)
}

// The answer to a release is lost, and with it the grant to the next. The release is
// repeated: it neither serves the one after, nor does it bring the grant once more,
// which a heartbeat finds.
func testRepeatedRelease(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, WaiterTTL: locktest.Long})
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	next := r.InQueue(locktest.Bounded(t), "k", 1)
	behind := r.OtherInQueue("k", 2)
	count := r.counting()
	lost := r.Proxy.SwallowReply(1, locktest.Is("release"))
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	locktest.Within(t, lost)
	require.Equal(t, 2, count("release"))

	l = locktest.Got(t, next)
	require.Equal(t, 1, count("confirm"))
	require.Equal(t, 1, r.Entries("k"), "two holders")
	require.Len(t, locktest.Queued(t, r.Server, "k"), 1)
	require.Empty(t, behind)
	r.trustedInRedis(l)
	r.passesOn(l, behind)
}

// A waiter that was there at many heartbeats is trusted from its enter all the same.
func testHeartbeatsMoveNoTrust(t *testing.T, k locktest.Kind) {
	const lease = 20 * time.Second
	r := newHarness(t, k, locktest.Options{Lease: lease, GrantLease: lease, WaiterTTL: time.Second})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	count := r.counting()
	waiting := r.InQueue(locktest.Bounded(t), "k", 1)
	entered := time.Now()
	locktest.Await(t, func() bool { return count("heartbeat") >= 5 })
	l := locktest.Next(t, before, waiting)
	require.Zero(t, count("confirm"))
	require.False(t, l.Deadline().After(entered.Add(lease)))
	r.passesOn(l)
}

// A heartbeat finds the grant whose message is late. One call confirms it, and sets the
// lease; the message changes nothing any more.
func testHeartbeatBeforeMessage(t *testing.T, k locktest.Kind) {
	const first = 10 * time.Second
	r, subscriber := withSubscriber(t, k, locktest.Options{Lease: locktest.Long, GrantLease: first, WaiterTTL: time.Second})
	before, waiting := r.heldAndWanted("k")
	behind := r.InQueue(locktest.Bounded(t), "k", 2)
	count := r.counting()
	subscriber.hold()
	l := locktest.Next(t, before, waiting)
	require.Equal(t, 1, count("confirm"))
	require.Greater(t, locktest.Number(t, r.Server, "PTTL", "k"), int(first.Milliseconds()))
	r.trustedInRedis(l)

	subscriber.release()
	heard := count("heartbeat") + 2
	locktest.Await(t, func() bool { return count("heartbeat") >= heard })
	r.trustedInRedis(l)
	require.Zero(t, count("give_up"))
	r.passesOn(l, behind)
}

// A waiter with a grant leaves before it receives the message. The key goes to the next,
// and no waiter believes the message.
func testMessageAfterLeave(t *testing.T, k locktest.Kind) {
	r, subscriber := withSubscriber(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, WaiterTTL: time.Second})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	leave := r.leaver("k", 1)
	rival := r.OtherInQueue("k", 2)
	last := r.InQueue(locktest.Bounded(t), "k", 3)
	count := r.counting()
	subscriber.hold()
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	require.Len(t, locktest.Queued(t, r.Server, "k"), 2, "it is granted")
	leave()
	l := locktest.Got(t, rival)

	subscriber.release()
	heard := count("heartbeat") + 2
	locktest.Await(t, func() bool { return count("heartbeat") >= heard })
	r.trustedInRedis(l)
	require.Empty(t, last)
	r.passesOn(l, last)
}

// An owner that was served in a run stands in the queue until the run is over. If the key
// is taken away before, Redis grants it to that owner once more, though none waits: the key
// is given back immediately.
func testGrantAfterTurn(t *testing.T, k locktest.Kind) {
	const never = 10 * locktest.Long
	r := newHarness(t, k, locktest.Options{Lease: never, GrantLease: never, WaiterTTL: never, Handover: ptr(locktest.Long)})
	served := r.inRun(r.Locker)
	last := r.InQueue(locktest.Bounded(t), "k", 2) // without a waiter, the locker would not hear
	behind := r.OtherInQueue("k", 3)

	require.NoError(t, locktest.ErrOf(r.Other.ForceUnlock(locktest.Bounded(t), "k")))
	require.NoError(t, locktest.Got(t, last).Unlock(locktest.Bounded(t)))
	require.NoError(t, locktest.Got(t, behind).Unlock(locktest.Bounded(t)))
	require.ErrorIs(t, served.Unlock(locktest.Bounded(t)), holdfast.ErrLost)
	r.Tidy("k")
}

// A grant is being confirmed while the key is taken away by force, and given to the
// next of the same locker, which hears first. Only that one has it. The other waits again,
// beside as many as may wait that came meanwhile.
func testForcedWhileConfirming(t *testing.T, k locktest.Kind) {
	const waiters = 2
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, WaiterTTL: locktest.Long, MaxWaiters: waiters})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	forced := r.InQueue(locktest.Bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	next := r.InQueue(locktest.Bounded(t), "k", 2)
	held := r.holdReplies("confirm")
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	locktest.Within(t, held)
	require.NoError(t, locktest.ErrOf(r.Other.ForceUnlock(locktest.Bounded(t), "k")))
	l := locktest.Got(t, next)
	var waits []<-chan locktest.Acquired
	for range waiters {
		ctx := &locktest.TellingContext{Context: locktest.Bounded(t), Waiting: make(chan struct{})}
		waits = append(waits, locktest.GoLock(r.Locker, ctx, "k"))
		locktest.Within(t, ctx.Waiting)
	}
	locktest.RequireSentinel(t, locktest.Within(t, locktest.GoLock(r.Locker, locktest.Bounded(t), "k")).Err, holdfast.ErrTooManyWaiters)
	r.letGo()
	locktest.Await(t, func() bool { return len(locktest.Queued(t, r.Server, "k")) == waiters+1 || len(forced) == 1 })
	require.Empty(t, forced, "two holders")
	require.NoError(t, l.Err())
	r.trustedInRedis(l)
	r.passesOn(l, append(waits, forced)...)
}

// A heartbeat has found the grant, and no other waiter was there, so nothing remembers it.
// Then the message comes, while another waits. The key stays the holder's.
func testMessageInNewQueue(t *testing.T, k locktest.Kind) {
	r, subscriber := withSubscriber(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, WaiterTTL: time.Second})
	before, waiting := r.heldAndWanted("k")
	subscriber.hold()
	l := locktest.Next(t, before, waiting)
	r.queueOver("k", l.Owner()) // soon: after four seconds the connection, which does not answer, would be given up
	ctx := &locktest.TellingContext{Context: locktest.Bounded(t), Waiting: make(chan struct{})}
	next := locktest.GoLock(r.Locker, ctx, "k")
	locktest.Within(t, ctx.Waiting)

	subscriber.release()
	locktest.Await(t, func() bool { return len(next) == 1 || len(locktest.Queued(t, r.Server, "k")) == 1 })
	require.Empty(t, next, "two holders")
	r.trustedInRedis(l)
	r.passesOn(l, next)
}

// subscriber is the connection on which a client hears messages. Held, messages are late, while
// calls are answered as ever. It is full while messages pass.
type subscriber chan struct{}

// withSubscriber is newHarness with a subscriber of the locker's client.
func withSubscriber(t *testing.T, k locktest.Kind, o locktest.Options) (*harness, subscriber) {
	t.Helper()
	s := make(subscriber, 1)
	s.release()
	r := newHarness(t, k, o, func(o *rueidis.ClientOption) {
		locktest.Dialled(o, func(c net.Conn) net.Conn { return &subscriberConn{Conn: c, subscriber: s} })
	})
	t.Cleanup(s.release)
	return r, s
}

// hold keeps what comes from now on until release.
func (s subscriber) hold()    { <-s }
func (s subscriber) release() { loop.Poke(s) }

// subscriberConn is a connection that is told to be a subscriber by the first SUBSCRIBE.
type subscriberConn struct {
	net.Conn
	subscriber subscriber
	hears      atomic.Bool
}

func (c *subscriberConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("SUBSCRIBE\r\n")) {
		c.hears.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *subscriberConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.hears.Load() {
		c.subscriber <- <-c.subscriber
	}
	return n, err
}

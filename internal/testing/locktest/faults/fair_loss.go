package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// fairLossCases are the rows of lost answers for a queue: no waiter enters twice, and a
// heartbeat finds a key that was granted in a lost answer.
var fairLossCases = []lossCase{
	{"enter", false, enterUnanswered},
	{"enter/with a grant", true, enterGrantUnanswered},
	{"release/with a grant", true, releaseGrantUnanswered},
	{"give_up/in the queue", false, leaveUnanswered},
	{"give_up/with a grant", true, leaveGrantUnanswered},
	{"confirm", true, confirmUnanswered},
	{"heartbeat", false, heartbeatUnanswered},
	{"heartbeat/with a grant", true, heartbeatGrantUnanswered},
}

func init() {
	register("F18_GrantedWhileEntering", testGrantedWhileEntering, fairOnly)
}

// inRun lets two waiters be served in one run after before, and returns the lease of the
// second. A waiter is no member if its client does not know yet that it is in the queue.
func (r *harness) inRun(before locktest.Locker) *holdfast.Lease {
	r.T.Helper()
	for range 20 {
		l := locktest.Lock(r.T, before, locktest.Bounded(r.T), "k")
		first := r.InQueue(locktest.Bounded(r.T), "k", 1)
		second := r.InQueue(locktest.Bounded(r.T), "k", 2)
		require.NoError(r.T, l.Unlock(locktest.Bounded(r.T)))
		l = locktest.Got(r.T, first)
		require.NoError(r.T, l.Unlock(locktest.Bounded(r.T)))
		member := locktest.Got(r.T, second)
		if member.Owner() == l.Owner() {
			require.Len(r.T, locktest.Queued(r.T, r.Server, "k"), 1)
			return member
		}
		require.NoError(r.T, member.Unlock(locktest.Bounded(r.T)))
	}
	require.Fail(r.T, "no waiter was served in a run")
	return nil
}

// served is a waiter that gets key, above all that were numbered before, and
// unlocks it.
func (r *harness) served(waiting <-chan locktest.Acquired, above int64) int64 {
	r.T.Helper()
	l := locktest.Got(r.T, waiting)
	require.Equal(r.T, 1, r.Entries("k"))
	if l.Fence() != 0 {
		require.Greater(r.T, l.Fence(), above)
	}
	require.NoError(r.T, l.Unlock(locktest.Bounded(r.T)))
	return l.Fence()
}

func enterUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	lost := lose("enter")
	first := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
	locktest.Within(t, lost)
	r.AwaitQueue("k", 1)
	second := r.InQueue(locktest.Bounded(t), "k", 2)
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	r.served(first, 0)
	r.served(second, 0)
}

// The key becomes free before the call arrives, which grants it.
func enterGrantUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	refused := make(chan struct{})
	r.Proxy.OnReply(seeing(locktest.Is("acquire"), func() {
		r.Proxy.OnReply(nil)
		r.Proxy.HoldRequests(true)
		close(refused)
	}))
	waiting := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
	locktest.Within(t, refused)
	lost := lose("enter")
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	r.Proxy.HoldRequests(false)
	locktest.Within(t, lost)
	r.served(waiting, before.Fence())
}

// The next waits in the same locker: its grant is in the answer.
func releaseGrantUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	first := r.InQueue(locktest.Bounded(t), "k", 1)
	second := r.InQueue(locktest.Bounded(t), "k", 2)
	lost := lose("release")
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	locktest.Within(t, lost)
	r.served(second, r.served(first, l.Fence()))
}

func leaveUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	leave := r.leaver("k", 1)
	staying := r.InQueue(locktest.Bounded(t), "k", 2)
	lost := lose("give_up")
	leave()
	locktest.Within(t, lost)
	r.AwaitQueue("k", 1)
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	r.served(staying, 0)
}

// A waiter that leaves has got the key, and its leave grants it to the next of the same
// locker.
func leaveGrantUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	leave := r.leaver("k", 1)
	staying := r.InQueue(locktest.Bounded(t), "k", 2)
	r.Proxy.HoldReplies(true) // the message of the grant
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	lost := lose("give_up")
	leave()
	r.Proxy.HoldReplies(false) // a new connection would wait for them
	locktest.Within(t, lost)
	r.served(staying, before.Fence())
}

func confirmUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	waiting := r.InQueue(locktest.Bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	lost := lose("confirm")
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	locktest.Within(t, lost)
	l := locktest.Got(t, waiting)
	require.Greater(t, locktest.Number(t, r.Server, "PTTL", "k"), int(time.Minute.Milliseconds()))
	require.Greater(t, time.Until(l.Deadline()), time.Minute)
	require.Greater(t, l.Fence(), before.Fence())
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
}

func heartbeatUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	lost := lose("heartbeat")
	waiting := r.InQueue(locktest.Bounded(t), "k", 1)
	locktest.Within(t, lost)
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	r.served(waiting, 0)
}

// No message says that the key is free: the heartbeat grants it.
func heartbeatGrantUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	before, waiting := r.heldAndWanted("k")
	lost := lose("heartbeat")
	r.Server.Do(t, "DEL", "k")
	locktest.Within(t, lost)
	r.served(waiting, before.Fence())
}

// The answer to an enter is lost one way, and the grant comes: it is not left to end
// while the answer is waited for.
func testGrantedWhileEntering(t *testing.T, k locktest.Kind) {
	const first = 3 * time.Second
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: first, GrantLease: first})
	before, served := r.heldAndWanted("k")
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	require.NoError(t, locktest.Got(t, served).Unlock(locktest.Bounded(t))) // the next enters by its own call
	before = locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	lost := dropReplies(r.Proxy, "enter")
	waiting := r.InQueue(locktest.Bounded(t), "k", 1)
	locktest.Within(t, lost)
	l := locktest.Next(t, before, waiting)
	require.NoError(t, l.Err())
	r.Proxy.Cut() // else the release is not answered either
	r.passesOn(l)
}

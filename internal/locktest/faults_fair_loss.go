package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// fairLossCases are what the rows of lost answers mean to a queue: nobody enters
// twice, and a key that was granted in a lost answer is found by a heartbeat.
var fairLossCases = []lossCase{
	{"enter", false, enterUnanswered},
	{"enter/with a grant", true, enterGrantUnanswered},
	{"release/with a grant", true, releaseGrantUnanswered},
	{"clean_up/in the queue", false, leaveUnanswered},
	{"clean_up/with a grant", true, leaveGrantUnanswered},
	{"confirm", true, confirmUnanswered},
	{"heartbeat", false, heartbeatUnanswered},
	{"heartbeat/with a grant", true, heartbeatGrantUnanswered},
}

func init() {
	registerFair("F6_GrantMessageLost", testGrantMessageLost)
	registerFair("F18_GrantedWhileEntering", testGrantedWhileEntering)
}

// inRun has two waiters served in one run after before, and returns the lease of the
// second. A waiter whose client has not yet heard that it is in the queue is no member.
func (r *faultRig) inRun(before holdfast.Locker) *holdfast.Lease {
	r.t.Helper()
	for range 20 {
		l := lock(r.t, before, bounded(r.t), "k")
		first := r.inLine(bounded(r.t), "k", 1)
		second := r.inLine(bounded(r.t), "k", 2)
		require.NoError(r.t, l.Unlock(bounded(r.t)))
		l = got(r.t, first)
		require.NoError(r.t, l.Unlock(bounded(r.t)))
		member := got(r.t, second)
		if member.Owner() == l.Owner() {
			require.Len(r.t, queued(r.t, r.server, "k"), 1)
			return member
		}
		require.NoError(r.t, member.Unlock(bounded(r.t)))
	}
	require.Fail(r.t, "nobody was served in a run")
	return nil
}

// served is a waiter that gets key, above all that were numbered before, and
// unlocks it.
func (r *faultRig) served(waiting <-chan acquired, above int64) int64 {
	r.t.Helper()
	l := got(r.t, waiting)
	require.Equal(r.t, 1, r.entries("k"))
	if l.Fence() != 0 {
		require.Greater(r.t, l.Fence(), above)
	}
	require.NoError(r.t, l.Unlock(bounded(r.t)))
	return l.Fence()
}

func enterUnanswered(t *testing.T, r *faultRig, lose func(string) <-chan struct{}) {
	before := lock(t, r.other, bounded(t), "k")
	lost := lose("enter")
	first := lockAside(r.locker, bounded(t), "k")
	within(t, lost)
	await(t, func() bool { return len(queued(t, r.server, "k")) == 1 })
	second := r.inLine(bounded(t), "k", 2)
	require.NoError(t, before.Unlock(bounded(t)))
	r.served(first, 0)
	r.served(second, 0)
}

// The key becomes free before the call arrives, which grants it.
func enterGrantUnanswered(t *testing.T, r *faultRig, lose func(string) <-chan struct{}) {
	before := lock(t, r.other, bounded(t), "k")
	refused := make(chan struct{})
	r.proxy.OnReply(func(cmd []string) redistest.Verdict {
		if verb(cmd) == "acquire" {
			r.proxy.OnReply(nil)
			r.proxy.HoldRequests(true)
			close(refused)
		}
		return redistest.Pass
	})
	waiting := lockAside(r.locker, bounded(t), "k")
	within(t, refused)
	lost := lose("enter")
	require.NoError(t, before.Unlock(bounded(t)))
	r.proxy.HoldRequests(false)
	within(t, lost)
	r.served(waiting, before.Fence())
}

// The next waits in the same locker: its grant is in the answer.
func releaseGrantUnanswered(t *testing.T, r *faultRig, lose func(string) <-chan struct{}) {
	l := lock(t, r.locker, bounded(t), "k")
	first := r.inLine(bounded(t), "k", 1)
	second := r.inLine(bounded(t), "k", 2)
	lost := lose("release")
	require.NoError(t, l.Unlock(bounded(t)))
	within(t, lost)
	r.served(second, r.served(first, l.Fence()))
}

func leaveUnanswered(t *testing.T, r *faultRig, lose func(string) <-chan struct{}) {
	before := lock(t, r.other, bounded(t), "k")
	ctx, cancel := context.WithCancel(bounded(t))
	leaving := r.inLine(ctx, "k", 1)
	staying := r.inLine(bounded(t), "k", 2)
	lost := lose("clean_up")
	cancel()
	require.ErrorIs(t, within(t, leaving).err, context.Canceled)
	within(t, lost)
	await(t, func() bool { return len(queued(t, r.server, "k")) == 1 })
	require.NoError(t, before.Unlock(bounded(t)))
	r.served(staying, 0)
}

// Who leaves has been granted the key, and its leave grants it to the next of the
// same locker.
func leaveGrantUnanswered(t *testing.T, r *faultRig, lose func(string) <-chan struct{}) {
	before := lock(t, r.other, bounded(t), "k")
	ctx, cancel := context.WithCancel(bounded(t))
	leaving := r.inLine(ctx, "k", 1)
	staying := r.inLine(bounded(t), "k", 2)
	r.proxy.HoldReplies(true) // the message of the grant
	require.NoError(t, before.Unlock(bounded(t)))
	lost := lose("clean_up")
	cancel()
	require.ErrorIs(t, within(t, leaving).err, context.Canceled)
	r.proxy.HoldReplies(false) // a new connection would wait for them
	within(t, lost)
	r.served(staying, before.Fence())
}

func confirmUnanswered(t *testing.T, r *faultRig, lose func(string) <-chan struct{}) {
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1, holdfast.FixedLease(time.Hour))
	lost := lose("confirm")
	require.NoError(t, before.Unlock(bounded(t)))
	within(t, lost)
	l := got(t, waiting)
	require.Greater(t, number(t, r.server, "PTTL", "k"), int(time.Minute.Milliseconds()))
	require.Greater(t, time.Until(l.Deadline()), time.Minute)
	require.Greater(t, l.Fence(), before.Fence())
	require.NoError(t, l.Unlock(bounded(t)))
}

func heartbeatUnanswered(t *testing.T, r *faultRig, lose func(string) <-chan struct{}) {
	before := lock(t, r.other, bounded(t), "k")
	lost := lose("heartbeat")
	waiting := r.inLine(bounded(t), "k", 1)
	within(t, lost)
	require.NoError(t, before.Unlock(bounded(t)))
	r.served(waiting, 0)
}

// Nobody has told that the key is free: the heartbeat grants it.
func heartbeatGrantUnanswered(t *testing.T, r *faultRig, lose func(string) <-chan struct{}) {
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1)
	lost := lose("heartbeat")
	r.server.Do(t, "DEL", "k")
	within(t, lost)
	r.served(waiting, before.Fence())
}

// Redis has said it, and the connection is lost before it is heard. A heartbeat finds
// the grant as soon as the inbox is heard again.
func testGrantMessageLost(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, Fencing: true, Stale: 10 * long, FirstLease: 10 * long})
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1)
	r.proxy.HoldReplies(true)
	require.NoError(t, before.Unlock(bounded(t)))
	require.Empty(t, queued(t, r.server, "k"), "it was heard")
	r.proxy.Cut()
	r.proxy.HoldReplies(false)
	r.served(waiting, before.Fence())
	r.tidy("k")
}

// The answer to an enter is lost one way, and the grant comes: it is not left to end
// while the answer is waited for.
func testGrantedWhileEntering(t *testing.T, d Kind) {
	const first = 3 * time.Second
	r := newFaultRig(t, d, Options{Lease: long, Stale: first, FirstLease: first})
	before := lock(t, r.other, bounded(t), "k")
	served := r.inLine(bounded(t), "k", 1)
	require.NoError(t, before.Unlock(bounded(t)))
	require.NoError(t, got(t, served).Unlock(bounded(t))) // the next enters by its own call
	before = lock(t, r.other, bounded(t), "k")
	lost := dropReplies(r.proxy, "enter")
	waiting := r.inLine(bounded(t), "k", 1)
	within(t, lost)
	require.NoError(t, before.Unlock(bounded(t)))
	l := got(t, waiting)
	require.NoError(t, l.Err())
	r.proxy.Cut() // else the release is not answered either
	require.NoError(t, l.Unlock(bounded(t)))
	r.tidy("k")
}

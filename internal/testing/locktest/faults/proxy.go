package faults

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// A proxy answers in words of its own, when it does not know whether the server has carried
// the call out.

func init() {
	register("F38_AcquireAnsweredByAProxy", testAcquireAnsweredByAProxy)
	register("F38_WaitAnsweredByAProxy", testWaitAnsweredByAProxy, ofOneHolder)
	register("F38_UnlockAnsweredByAProxy", testUnlockAnsweredByAProxy)
	register("F38_EntryAnsweredByAProxy", testEntryAnsweredByAProxy)
	register("F38_UndoAnsweredByAProxy", testUndoAnsweredByAProxy)
	register("F38_EnterAnsweredByAProxy", testEnterAnsweredByAProxy, fairOnly)
	register("F38_LeaveAnsweredByAProxy", testLeaveAnsweredByAProxy, fairOnly)
}

// ownWords are Envoy's.
const ownWords = "upstream failure"

// serverAnswers lets the server answer again.
func (r *harness) serverAnswers() { r.Proxy.OwnWords("", false, nil) }

// few matches the first calls: two for each node.
func (r *harness) few(names ...string) func([]string) bool {
	var calls atomic.Int32
	return func(cmd []string) bool {
		return locktest.Is(names...)(cmd) && int(calls.Add(1)) <= 2*max(1, r.Kind.Nodes)
	}
}

// refusedByProxy requires the proxy's words, and no error of ours.
func refusedByProxy(t *testing.T, err error) {
	t.Helper()
	locktest.RequireSentinel(t, err, nil, ownWords)
}

// free requires that another gets the key, long before a lease would end.
func (r *harness) free(key string) {
	r.T.Helper()
	require.NoError(r.T, locktest.Got(r.T, locktest.GoLock(r.Other, locktest.Bounded(r.T), key)).Unlock(locktest.Bounded(r.T)))
	r.Tidy(key)
}

// An acquire ends immediately with these words, and what it did is undone.
func testAcquireAnsweredByAProxy(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	for _, lock := range []func() error{
		func() error { return locktest.ErrOf(r.Locker.TryLock(locktest.Bounded(t), "k")) },
		func() error { return locktest.ErrOf(r.Locker.TryLockFor(locktest.Bounded(t), "k", locktest.Long)) },
		func() error { return locktest.ErrOf(r.Locker.Lock(locktest.Bounded(t), "k")) },
	} {
		r.Proxy.OwnWords(ownWords, false, locktest.Is("acquire"))
		refusedByProxy(t, lock())
		r.serverAnswers()
		r.free("k")
	}
}

// So does a wait, by the call that is to have the key when it is free, or that confirms a grant.
func testWaitAnsweredByAProxy(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, Confirmed: true})
	l := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	waiter := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
	r.AwaitWaiters("k", 1)
	verb := "acquire"
	if k.Fair {
		verb = "confirm"
	}
	r.Proxy.OwnWords(ownWords, false, locktest.Is(verb))
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	refusedByProxy(t, locktest.Within(t, waiter).Err)
	r.serverAnswers()
	r.free("k")
}

// An Unlock goes on, whether the server got it or not, while its caller waits and after that.
func testUnlockAnsweredByAProxy(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	for _, instead := range []bool{false, true} {
		l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
		r.Proxy.OwnWords(ownWords, instead, r.few("release"))
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
		r.free("k")

		l = locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
		r.Proxy.OwnWords(ownWords, instead, locktest.Is("release"))
		short, cancel := context.WithTimeout(locktest.Bounded(t), 100*time.Millisecond)
		locktest.RequireSentinel(t, l.Unlock(short), holdfast.ErrUnknown, ownWords)
		cancel()
		r.serverAnswers()
		r.free("k")
	}
}

// A nested entry ends immediately with these words. The count of entries becomes right again, also
// after an Unlock of one.
func testEntryAnsweredByAProxy(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	settle := func() {
		t.Helper()
		r.serverAnswers()
		require.NoError(t, locktest.Lock(t, r.Locker, l.Bind(locktest.Bounded(t)), "k").Unlock(locktest.Bounded(t))) // its turn is after the others
		require.Equal(t, 1, r.Entries("k"))
	}
	for _, instead := range []bool{false, true} {
		for _, lock := range []func(context.Context, string, ...holdfast.LockOption) (*holdfast.Lease, error){r.Locker.TryLock, r.Locker.Lock} {
			r.Proxy.OwnWords(ownWords, instead, locktest.Is("set_entries"))
			refusedByProxy(t, locktest.ErrOf(lock(l.Bind(locktest.Bounded(t)), "k")))
			settle()
		}
		inner := locktest.Lock(t, r.Locker, l.Bind(locktest.Bounded(t)), "k")
		r.Proxy.OwnWords(ownWords, instead, locktest.Is("set_entries"))
		require.ErrorIs(t, inner.Unlock(locktest.Bounded(t)), holdfast.ErrUnknown)
		settle()
	}
	require.NoError(t, l.Err())
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	r.free("k")
}

// The undoing of an acquire whose reply was lost goes on after these words.
func testUndoAnsweredByAProxy(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	r.Proxy.OwnWords(ownWords, true, r.few("give_up"))
	r.Proxy.SwallowReply(1, locktest.Is("acquire"))
	require.ErrorIs(t, locktest.ErrOf(r.Locker.TryLock(locktest.Bounded(t), "k")), holdfast.ErrUnknown)
	r.free("k")
}

// A waiter that enters ends immediately with these words, and leaves the queue.
func testEnterAnsweredByAProxy(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	l := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	r.Proxy.OwnWords(ownWords, false, locktest.Is("enter"))
	refusedByProxy(t, locktest.ErrOf(r.Locker.Lock(locktest.Bounded(t), "k")))
	r.AwaitQueue("k", 0)
	r.serverAnswers()
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	r.free("k")
}

// A waiter that leaves is given up after these words. They end no other wait.
func testLeaveAnsweredByAProxy(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	l := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	ctx, leave := context.WithCancel(locktest.Bounded(t))
	first, second := r.InQueue(ctx, "k", 1), r.InQueue(locktest.Bounded(t), "k", 2)
	r.Answered("k")
	r.Proxy.OwnWords(ownWords, true, r.few("give_up"))
	leave()
	require.ErrorIs(t, locktest.Within(t, first).Err, context.Canceled)
	r.AwaitQueue("k", 1)
	require.Empty(t, second)
	require.NoError(t, locktest.Next(t, l, second).Unlock(locktest.Bounded(t)))
	r.free("k")
}

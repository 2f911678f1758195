package faults

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// One answer of Redis is lost, for each command that there is and in each way
// that there is. Every case knows only that: whether the command was carried out
// makes no difference to what callers see.

func init() {
	register("F6_ReplyLostAfterExecution", func(t *testing.T, k locktest.Kind) { testLoss(t, k, cutReply) }, ofOneHolder|inParts)
	register("F16_ResetBeforeExecution", func(t *testing.T, k locktest.Kind) { testLoss(t, k, cutRequest) }, ofOneHolder|inParts)
	register("F18_RepliesLostOneWay", func(t *testing.T, k locktest.Kind) { testLoss(t, k, dropReplies) }, ofOneHolder|inParts)
}

// loss loses the answer to the next command of that verb. The channel is closed
// when that has happened.
type loss func(w *locktest.Proxies, name string) <-chan struct{}

// cutReply: executed, and the connection is reset.
func cutReply(w *locktest.Proxies, name string) <-chan struct{} {
	return w.SwallowReply(1, locktest.Is(name))
}

// cutRequest: not executed, and the connection is reset.
func cutRequest(w *locktest.Proxies, name string) <-chan struct{} {
	return w.OnMost(func(p *redistest.Proxy) <-chan struct{} {
		return redistest.Once(p.OnRequest, locktest.Is(name), redistest.Cut)
	})
}

// dropReplies: executed, and nothing is heard any more on that connection.
func dropReplies(w *locktest.Proxies, name string) <-chan struct{} {
	return w.OnMost(func(p *redistest.Proxy) <-chan struct{} {
		return redistest.Once(p.OnReply, locktest.Is(name), redistest.Drop)
	})
}

// A silent connection is noticed within three seconds.
func quickPing(o *rueidis.ClientOption) {
	o.ConnWriteTimeout = 2 * time.Second
	o.Dialer = net.Dialer{KeepAlive: 100 * time.Millisecond}
}

// lossCase is what happens to one command whose answer is lost: fenced says
// whether the lockers number their holds.
type lossCase struct {
	name   string
	fenced bool
	run    func(t *testing.T, r *harness, lose func(name string) <-chan struct{})
}

var lossCases = []lossCase{
	{"acquire/try", false, tryAcquireUnanswered},
	{"acquire/wait", false, waitAcquireUnanswered},
	{"acquire/fenced try", true, tryAcquireUnanswered},
	{"acquire/fenced wait", true, waitAcquireUnanswered},
	{"give_up", false, giveUpUnanswered},
	{"set_entries/nested try", false, nestedTryUnanswered},
	{"set_entries/nested wait", false, nestedWaitUnanswered},
	{"set_entries/nested unlock", false, nestedUnlockUnanswered},
	{"release", false, releaseUnanswered},
	{"release/fenced", true, releaseUnanswered},
	{"renew", false, renewUnanswered},
	{"inspect", false, inspectUnanswered},
	{"force_release", false, forceUnanswered},
}

const lossWaiters = 2 // as many as a locker allows

func testLoss(t *testing.T, k locktest.Kind, how loss) {
	const lease = 15 * time.Second // long enough for an answer to be given up and asked for again
	cases := append(slices.Clone(lossCases), lossCase{"acquire/as waiter", false, grantUnanswered})
	if k.Fair {
		cases = slices.Concat(lossCases, fairLossCases)
	}
	for _, c := range cases {
		k.Part(t, c.name, func(t *testing.T, k locktest.Kind) {
			r := newHarness(t, k, locktest.Options{
				Lease: lease, Fencing: c.fenced, MaxOutage: ptr(time.Minute), MaxWaiters: lossWaiters, Handover: ptr(lease),
				WaiterTTL: 3 * time.Second,
			}, quickPing)
			c.run(t, r, func(name string) <-chan struct{} { return how(r.Proxy, name) })
			r.Tidy("k")
		})
	}
}

func tryAcquireUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	lost := lose("acquire")
	for again := true; again; {
		require.ErrorIs(t, locktest.ErrOf(r.Locker.TryLock(locktest.Bounded(t), "k")), holdfast.ErrUnknown)
		select {
		case <-lost:
			again = false
		case <-time.After(2 * time.Second): // a quorum waits only for a tenth of its lease, and may not have sent it by then
			require.Greater(t, r.Kind.Nodes, 1)
		}
	}
	require.NoError(t, locktest.Cycle(r.Other, locktest.Bounded(t), "k"))
}

func waitAcquireUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	lost := lose("acquire")
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	locktest.Within(t, lost)
	require.Equal(t, 1, r.Entries("k"))
	first := l.Fence()
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	again := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	if first != 0 {
		require.Greater(t, again.Fence(), first)
	}
	require.NoError(t, again.Unlock(locktest.Bounded(t)))
}

// The attempt that is lost is that of a waiter, after a release.
func grantUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	var waiting, behind <-chan locktest.Acquired
	r.asleep(func() { // else an attempt that is under way may take what is released
		waiting = locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
		behind = locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
	}, "k")
	lost := lose("acquire")
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	locktest.Within(t, lost)
	for range 2 {
		require.NoError(t, locktest.Got(t, firstOf(waiting, behind)).Unlock(locktest.Bounded(t)))
	}
}

func giveUpUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	acquired := r.Proxy.SwallowReply(1, locktest.Is("acquire"))
	cleaned := lose("give_up")
	require.ErrorIs(t, locktest.ErrOf(r.Locker.TryLock(locktest.Bounded(t), "k")), holdfast.ErrUnknown)
	locktest.Within(t, acquired)
	locktest.Within(t, cleaned)
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k") // a repeated undo must not touch it
	require.Equal(t, 1, r.Entries("k"))
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
}

func nestedTryUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	lost := lose("set_entries")
	require.ErrorIs(t, locktest.ErrOf(r.Locker.TryLock(l.Bind(locktest.Bounded(t)), "k")), holdfast.ErrUnknown)
	locktest.Within(t, lost)
	locktest.Await(t, func() bool { return r.Entries("k") == 1 })
	inner := locktest.Lock(t, r.Locker, l.Bind(locktest.Bounded(t)), "k")
	require.Equal(t, 2, r.Entries("k"))
	require.NoError(t, inner.Unlock(locktest.Bounded(t)))
	require.Equal(t, 1, r.Entries("k"))
	r.notHandedOver(l)
}

// notHandedOver unlocks l while others wait in the same locker. The first of them
// must get a hold of its own: what is still on its way would count for it.
func (r *harness) notHandedOver(l *holdfast.Lease) {
	waiting := crowded(locktest.Bounded(r.T), r.Locker, "k", lossWaiters)
	require.NoError(r.T, l.Unlock(locktest.Bounded(r.T)))
	for after := range waiting {
		require.NoError(r.T, after.Err)
		require.NotEqual(r.T, l.Owner(), after.Lease.Owner())
		require.Equal(r.T, 1, r.Entries("k"))
		require.NoError(r.T, after.Lease.Unlock(locktest.Bounded(r.T)))
	}
}

func nestedWaitUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	lost := lose("set_entries")
	inner := locktest.Lock(t, r.Locker, l.Bind(locktest.Bounded(t)), "k")
	locktest.Within(t, lost)
	require.Equal(t, 2, r.Entries("k"))
	require.NoError(t, inner.Unlock(locktest.Bounded(t)))
	require.Equal(t, 1, r.Entries("k"))
	r.notHandedOver(l)
}

func nestedUnlockUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	inner := locktest.Lock(t, r.Locker, l.Bind(locktest.Bounded(t)), "k")
	lost := lose("set_entries")
	require.ErrorIs(t, inner.Unlock(locktest.Bounded(t)), holdfast.ErrUnknown)
	locktest.Within(t, lost)
	locktest.Await(t, func() bool { return r.Entries("k") == 1 })
	require.NoError(t, l.Err())
	r.notHandedOver(l)
}

// While the release is repeated, another takes the key: that hold must survive.
func releaseUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	next := locktest.GoLock(r.Other, locktest.Bounded(t), "k")
	r.AwaitWaiters("k", 1)
	lost := lose("release")
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	locktest.Within(t, lost)
	taken := locktest.Got(t, next)
	if l.Fence() != 0 {
		require.Greater(t, taken.Fence(), l.Fence())
	}
	require.Equal(t, 1, r.Entries("k"))
	require.NoError(t, taken.Unlock(locktest.Bounded(t)))
	require.ErrorIs(t, l.Unlock(locktest.Bounded(t)), holdfast.ErrReleased)
}

func renewUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	lost := lose("renew")
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	deadline := l.Deadline()
	locktest.Within(t, lost)
	locktest.Await(t, func() bool { return l.Deadline().After(deadline) || l.Err() != nil })
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
}

func inspectUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	l := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	lost := lose("inspect")
	require.ErrorIs(t, locktest.ErrOf(r.Locker.Inspect(locktest.Bounded(t), "k")), holdfast.ErrUnknown)
	locktest.Within(t, lost)
	locktest.Await(t, func() bool {
		s, err := r.Locker.Inspect(locktest.Bounded(t), "k")
		return err == nil && s.Owner == l.Owner()
	})
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
}

func forceUnanswered(t *testing.T, r *harness, lose func(string) <-chan struct{}) {
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	lost := lose("force_release")
	require.ErrorIs(t, locktest.ErrOf(r.Locker.ForceUnlock(locktest.Bounded(t), "k")), holdfast.ErrUnknown)
	locktest.Within(t, lost)
	if locktest.Exists(t, r.Server, "k") {
		err := l.Unlock(locktest.Bounded(t))
		if r.Kind.Nodes > 1 && errors.Is(err, holdfast.ErrLost) { // some nodes were about to hear of it
			return
		}
		require.NoError(t, err)
		return
	}
	locktest.Within(t, l.Done()) // at the next renewal
	require.ErrorIs(t, l.Unlock(context.Background()), holdfast.ErrLost)
}

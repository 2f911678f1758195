package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() {
	register("F4_CancelledAtEveryStep", testCancelledAtEveryStep, ofOneHolder|inParts)
	register("F4_CancelledAsTheReplyComes", testCancelledAtReply)
	register("F4_CancelledDuringUndo", testCancelledDuringUndo)
	register("F4_GrantForNobodyIsNotRenewed", testGrantForNobody, ofOneHolder)
	register("F4_CancelledInARun", testCancelledInARun, fairOnly)
	register("F4_CancelledWhileConfirming", testCancelledWhileConfirming, fairOnly)
}

// A step is a request or a reply of the locker, those of its connections' set-up
// included. A Lock is cancelled at the k-th step, for each k that there is: of a
// free key, of one that another client holds and then releases, and each of both
// with and without a waiter behind. Nothing may be left, and a waiter gets the
// key: all leases are so long that nothing is cured by expiry.
func testCancelledAtEveryStep(t *testing.T, k locktest.Kind) {
	for _, held := range []bool{false, true} {
		for _, followed := range []bool{false, true} {
			for _, replies := range []bool{false, true} {
				k.Part(t, fmt.Sprintf("held=%t,followed=%t,replies=%t", held, followed, replies), func(t *testing.T, k locktest.Kind) {
					r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
					steps := 0
					var lockers []locktest.Locker
					for more := true; more; {
						locker := locktest.Must(k.New(r.Client, locktest.Options{Lease: locktest.Long}))(t)
						lockers = append(lockers, locker)
						steps++
						more = r.cancelledAtStep(locker, steps, held, followed, replies)
					}
					for i, locker := range lockers {
						r.Tidy(stepKey(i + 1))
						require.NoError(t, locker.Close())
					}
					least := 1 // acquire
					if held {
						least = 4 // acquire, SUBSCRIBE, acquire, acquire
					}
					require.Greater(t, steps, least, "the walk missed steps")
				})
			}
		}
	}
}

// stepKey is the key of the walk's k-th Lock.
func stepKey(k int) string { return fmt.Sprintf("key%d", k) }

// cancelledAtStep makes one Lock, and reports whether it has so many steps.
func (r *harness) cancelledAtStep(locker locktest.Locker, k int, held, followed, replies bool) bool {
	t, key := r.T, stepKey(k)
	ctx, cancel := context.WithCancel(locktest.Bounded(t))
	defer cancel()

	var before *holdfast.Lease
	if held {
		before = locktest.Lock(t, r.Other, ctx, key)
	}
	var steps atomic.Int64
	begun, behind := make(chan struct{}), make(chan struct{})
	hook := seeing(func(cmd []string) bool { return locktest.Verb(cmd) != "ping" }, func() {
		n := steps.Add(1)
		if n == 1 {
			close(begun)
			<-behind
		}
		if n == int64(k) {
			cancel()
		}
	})
	if replies {
		r.Proxy.OnReply(hook)
	} else {
		r.Proxy.OnRequest(hook)
	}
	first := locktest.GoLock(locker, ctx, key)
	locktest.Within(t, begun)
	var second <-chan locktest.Acquired
	if followed {
		second = locktest.GoLock(locker, locktest.Bounded(t), key)
	}
	close(behind)
	if held {
		locktest.Await(t, func() bool { return ctx.Err() != nil || r.Kind.Waiting(r.T, r.Server, key) > 0 })
		require.NoError(t, before.Unlock(locktest.Bounded(t)))
	}
	if a := locktest.Within(t, first); a.Err == nil {
		require.NoError(t, a.Lease.Unlock(locktest.Bounded(t)))
	} else {
		require.ErrorIs(t, a.Err, context.Canceled)
	}
	r.Proxy.OnReply(nil)
	r.Proxy.OnRequest(nil)
	if followed {
		require.NoError(t, locktest.Got(t, second).Unlock(locktest.Bounded(t)))
	}
	require.NoError(t, locktest.Lock(t, r.Other, locktest.Bounded(t), key).Unlock(locktest.Bounded(t)), "the turn was not passed on")
	return steps.Load() >= int64(k)
}

// The cancellation comes just ahead of the reply to the only attempt: the caller of a free key
// does not get the lease. Behind a release of its own that is not yet answered it has to wait on
// a fair lock, and may then be the holder.
func testCancelledAtReply(t *testing.T, k locktest.Kind) {
	const times = 200
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	cancelled := 0
	for range times {
		ctx, cancel := context.WithCancel(locktest.Bounded(t))
		r.Proxy.OnReply(seeing(locktest.Is("acquire", "enter"), cancel))
		l, err := r.Locker.Lock(ctx, "k")
		if err == nil && k.Fair {
			require.NoError(t, l.Unlock(locktest.Bounded(t)))
			continue
		}
		cancelled++
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, locktest.Cycle(r.Other, locktest.Bounded(t), "k"))
	}
	require.Greater(t, cancelled, times/10)
	r.Tidy("k")
}

// While the undo after a cancelled Lock is on its way, the next Lock meets
// the remains of the first, and may be cancelled itself; the third gets the key.
func testCancelledDuringUndo(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	for _, another := range []bool{false, true} {
		ctx, cancel := context.WithCancel(locktest.Bounded(t))
		r.Proxy.OnReply(when(locktest.Is("acquire"), func() redistest.Verdict { // executed, not answered
			cancel()
			return redistest.Cut
		}))
		hook, cleaning := locktest.Holding("give_up", "end_round")
		r.Proxy.OnRequest(hook)
		require.ErrorIs(t, locktest.ErrOf(r.Locker.Lock(ctx, "k")), context.Canceled)
		locktest.Within(t, cleaning)
		r.Proxy.OnReply(nil)
		if another { // one more, whose acquire is held up behind the undo
			ctx, cancel := context.WithCancel(locktest.Bounded(t))
			second := locktest.GoLock(r.Locker, ctx, "k")
			cancel()
			require.ErrorIs(t, locktest.Within(t, second).Err, context.Canceled)
		}
		third := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
		r.letGo()
		require.NoError(t, locktest.Got(t, third).Unlock(locktest.Bounded(t)))
		r.Tidy("k")
	}
}

// A waiter leaves while the key is being granted. The call that would give it back is lost
// for as long as the lease lasts: nothing may keep that hold alive beyond.
func testGrantForNobody(t *testing.T, k locktest.Kind) {
	const lease = 9 * time.Second // so that it is still there when that is looked at
	r := newHarness(t, k, locktest.Options{Lease: lease, WaiterTTL: lease, GrantLease: lease})
	other := k.Open(t, r.Server.Client(t), locktest.Options{Lease: locktest.Long, WaiterTTL: lease, GrantLease: lease})
	before := locktest.Lock(t, other, locktest.Bounded(t), "k")
	ctx, cancel := context.WithCancel(locktest.Bounded(t))
	defer cancel()
	var waiting <-chan locktest.Acquired
	r.asleep(func() { waiting = locktest.GoLock(r.Locker, ctx, "k") }, "k")

	r.Proxy.OnRequest(always(locktest.Is("release", "give_up", "end_round"), redistest.Cut))
	if k.Fair { // the grant is a message
		r.Proxy.HoldReplies(true)
	} else { // the head has to hear that it may try
		r.holdReplies("acquire")
	}
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	for _, s := range r.Server { // one may be late to release it
		locktest.Await(t, func() bool { return !k.Has(t, s, "k", before.Owner()) })
	}
	locktest.Await(t, func() bool { return locktest.Exists(t, r.Server, "k") })
	cancel()
	require.ErrorIs(t, locktest.Within(t, waiting).Err, context.Canceled)
	r.Proxy.OnReply(nil)
	r.Proxy.Release()
	r.Proxy.HoldReplies(false)
	require.True(t, locktest.Exists(t, r.Server, "k"))
	locktest.Await(t, func() bool { return !locktest.Exists(t, r.Server, "k") })
	r.Proxy.OnRequest(nil)
	r.Tidy("k")
}

// A run is granted to the locker: to four of its waiters, of which the second and
// the third are cancelled after 0 to 3 ms, in steps of 20 µs, while the key is
// released at half that time. The others are served in their order, and then the
// other client; nothing is left.
func testCancelledInARun(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, Fencing: true})
	const most = 3 * time.Millisecond
	cancelled := 0
	for delay := time.Duration(0); delay <= most; delay += 20 * time.Microsecond {
		before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
		last := before.Fence()
		ctx, cancel := context.WithCancel(locktest.Bounded(t))
		var waits []<-chan locktest.Acquired
		for i := range 4 {
			c := locktest.Bounded(t)
			if i == 1 || i == 2 {
				c = ctx
			}
			waits = append(waits, r.InQueue(c, "k", i+1))
		}
		behind := r.OtherInQueue("k", 5)
		time.AfterFunc(delay, cancel)
		released := make(chan error, 1)
		time.AfterFunc(most/2, func() { released <- before.Unlock(locktest.Bounded(t)) })

		for i, w := range append(waits, behind) {
			a := locktest.Within(t, w)
			if (i == 1 || i == 2) && a.Err != nil {
				cancelled++
				require.ErrorIs(t, a.Err, context.Canceled)
				continue
			}
			require.NoError(t, a.Err)
			k.Grown(t, last, a.Lease.Fence())
			last = a.Lease.Fence()
			require.NoError(t, a.Lease.Unlock(locktest.Bounded(t)))
		}
		require.NoError(t, locktest.Within(t, released))
	}
	require.Greater(t, cancelled, 50)
	r.Tidy("k")
}

// The grant has to be confirmed, as the waiter asks for a lease of its own. It is
// cancelled while that call is on its way, or its answer.
func testCancelledWhileConfirming(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long})
	for key, set := range map[string]func(redistest.Hook){"request": r.Proxy.OnRequest, "reply": r.Proxy.OnReply} {
		before := locktest.Lock(t, r.Other, locktest.Bounded(t), key)
		ctx, cancel := context.WithCancel(locktest.Bounded(t))
		going := r.InQueue(ctx, key, 1, holdfast.FixedLease(time.Hour))
		staying := r.InQueue(locktest.Bounded(t), key, 2, holdfast.FixedLease(time.Hour))
		hook, held := locktest.Holding("confirm")
		set(hook)
		require.NoError(t, before.Unlock(locktest.Bounded(t)))
		locktest.Within(t, held)
		cancel()
		require.ErrorIs(t, locktest.Within(t, going).Err, context.Canceled)
		set(nil)
		r.Proxy.Release()
		l := locktest.Got(t, staying)
		require.Equal(t, l.Owner(), r.Owner(key))
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
	}
	r.Tidy("request")
	r.Tidy("reply")
}

package locktest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	register("F4_CancelledAtEveryStep", testCancelledAtEveryStep)
	register("F4_CancelledAtEveryInstant", testCancelledAtEveryInstant)
	register("F4_CancelledAsTheReplyComes", testCancelledAtReply)
	register("F4_CancelledAsTheLockIsHandedOver", testCancelledAtHandover)
	register("F4_CancelledDuringCleanUp", testCancelledDuringCleanUp)
	register("F4_GrantForNobodyIsNotRenewed", testGrantForNobody)
}

// A step is a request or a reply of the locker, those of its connections' set-up
// included. A Lock is cancelled at the k-th step, for each k that there is: of a
// free key, of one that another client holds and then releases, and each of both
// with and without somebody who waits behind. Nothing may be left, and whoever
// waits gets the key: all leases are so long that nothing is cured by expiry.
func testCancelledAtEveryStep(t *testing.T, d Kind) {
	for _, held := range []bool{false, true} {
		for _, followed := range []bool{false, true} {
			for _, replies := range []bool{false, true} {
				t.Run(fmt.Sprintf("held=%t,followed=%t,replies=%t", held, followed, replies), func(t *testing.T) {
					t.Parallel()
					r := newFaultRig(t, d, Options{Lease: long})
					steps := 0
					var lockers []holdfast.Locker
					for more := true; more; {
						locker, err := d.New(r.client, Options{Lease: long})
						require.NoError(t, err)
						lockers = append(lockers, locker)
						steps++
						more = r.cancelledAtStep(locker, steps, held, followed, replies)
					}
					for i, locker := range lockers {
						r.tidy(stepKey(i + 1))
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
func (r *faultRig) cancelledAtStep(locker holdfast.Locker, k int, held, followed, replies bool) bool {
	t, key := r.t, stepKey(k)
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()

	var before *holdfast.Lease
	if held {
		before = lock(t, r.other, ctx, key)
	}
	var steps atomic.Int64
	begun, behind := make(chan struct{}), make(chan struct{})
	hook := func(cmd []string) redistest.Verdict {
		if verb(cmd) == "ping" {
			return redistest.Pass
		}
		n := steps.Add(1)
		if n == 1 {
			close(begun)
			<-behind
		}
		if n == int64(k) {
			cancel()
		}
		return redistest.Pass
	}
	if replies {
		r.proxy.OnReply(hook)
	} else {
		r.proxy.OnRequest(hook)
	}
	first := lockAside(locker, ctx, key)
	within(t, begun)
	var second <-chan acquired
	if followed {
		second = lockAside(locker, bounded(t), key)
	}
	close(behind)
	if held {
		await(t, func() bool { return ctx.Err() != nil || r.kind.waiting(r.t, r.server, key) > 0 })
		require.NoError(t, before.Unlock(bounded(t)))
	}
	if a := within(t, first); a.err == nil {
		require.NoError(t, a.lease.Unlock(bounded(t)))
	} else {
		require.ErrorIs(t, a.err, context.Canceled)
	}
	r.proxy.OnReply(nil)
	r.proxy.OnRequest(nil)
	if followed {
		require.NoError(t, got(t, second).Unlock(bounded(t)))
	}
	require.NoError(t, lock(t, r.other, bounded(t), key).Unlock(bounded(t)), "the turn was not passed on")
	return steps.Load() >= int64(k)
}

// The cancellation comes after 0 to 5 ms, in steps of 20 µs, while the key is
// released at half that time, by another client and by this one in turn.
func testCancelledAtEveryInstant(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long})
	cancelled := 0
	for delay := time.Duration(0); delay <= 5*time.Millisecond; delay += 20 * time.Microsecond {
		holder := r.other
		if delay%(40*time.Microsecond) == 0 {
			holder = r.locker
		}
		before := lock(t, holder, bounded(t), "k")
		ctx, cancel := context.WithCancel(bounded(t))
		first := lockAside(r.locker, ctx, "k")
		second := lockAside(r.locker, bounded(t), "k")
		time.AfterFunc(delay, cancel)
		released := make(chan error, 1)
		time.AfterFunc(2500*time.Microsecond, func() { released <- before.Unlock(bounded(t)) })

		if a := within(t, first); a.err == nil {
			require.NoError(t, a.lease.Unlock(bounded(t)))
		} else {
			cancelled++
			require.ErrorIs(t, a.err, context.Canceled)
		}
		require.NoError(t, got(t, second).Unlock(bounded(t)))
		require.NoError(t, within(t, released))
		cancel()
	}
	require.Greater(t, cancelled, 50)
	r.tidy("k")
}

// The cancellation comes just ahead of the reply to the only attempt: the caller
// of a free key finds either, or both. Behind a release of its own that is not yet
// answered it has to wait on a fair lock, and may then be the holder.
func testCancelledAtReply(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long})
	cancelled := 0
	for range 1000 {
		ctx, cancel := context.WithCancel(bounded(t))
		r.proxy.OnReply(func(cmd []string) redistest.Verdict {
			if is("acquire", "enter")(cmd) {
				cancel()
			}
			return redistest.Pass
		})
		l, err := r.locker.Lock(ctx, "k")
		if err == nil && d.Fair {
			require.NoError(t, l.Unlock(bounded(t)))
			continue
		}
		cancelled++
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, lock(t, r.other, bounded(t), "k").Unlock(bounded(t)))
	}
	require.Greater(t, cancelled, 100)
	r.tidy("k")
}

// The cancellation follows right upon the grant, so that the waiter finds both.
func testCancelledAtHandover(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, MaxWaiters: 2, Handover: ptr(long)})
	cancelled := 0
	for range 300 {
		before := lock(t, r.locker, bounded(t), "k")
		ctx, cancel := context.WithCancel(bounded(t))
		waiting := crowded(ctx, r.locker, "k", 2)
		require.NoError(t, before.Unlock(bounded(t)))
		cancel()
		for a := range waiting {
			if a.err == nil {
				require.NoError(t, a.lease.Unlock(bounded(t)))
			} else {
				cancelled++
				require.ErrorIs(t, a.err, context.Canceled)
			}
		}
	}
	require.Greater(t, cancelled, 100) // of 600
	r.tidy("k")
}

// While the clean-up after a cancelled Lock is on its way, the next Lock meets
// the remains of the first, and may be cancelled itself; the third gets the key.
func testCancelledDuringCleanUp(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long})
	for _, verbs := range [][]string{{"acquire"}, {"acquire", "clean_up"}} {
		ctx, cancel := context.WithCancel(bounded(t))
		cleaning := make(chan struct{}, 1)
		r.proxy.OnReply(func(cmd []string) redistest.Verdict { // executed, not answered
			if verb(cmd) == "acquire" {
				cancel()
				return redistest.Cut
			}
			return redistest.Pass
		})
		r.proxy.OnRequest(func(cmd []string) redistest.Verdict {
			if is("clean_up", "undo")(cmd) {
				poke(cleaning)
				return redistest.Hold
			}
			return redistest.Pass
		})
		_, err := r.locker.Lock(ctx, "k")
		require.ErrorIs(t, err, context.Canceled)
		within(t, cleaning)
		r.proxy.OnReply(nil)
		if len(verbs) > 1 { // one more, whose acquire is held up behind the clean-up
			ctx, cancel := context.WithCancel(bounded(t))
			second := lockAside(r.locker, ctx, "k")
			cancel()
			require.ErrorIs(t, within(t, second).err, context.Canceled)
		}
		third := lockAside(r.locker, bounded(t), "k")
		r.proxy.OnRequest(nil)
		r.proxy.Release()
		require.NoError(t, got(t, third).Unlock(bounded(t)))
		r.tidy("k")
	}
}

// A waiter leaves while the key is being granted. What would give it back is lost
// for as long as the lease lasts: nobody may keep that hold alive beyond.
func testGrantForNobody(t *testing.T, d Kind) {
	const lease = 3 * time.Second // so that it is still there when that is looked at
	r := newFaultRig(t, d, Options{Lease: lease, Stale: lease, FirstLease: lease})
	other := d.Open(t, r.server.Client(t), Options{Lease: long, Stale: lease, FirstLease: lease})
	before := lock(t, other, bounded(t), "k")
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	var waiting <-chan acquired
	r.asleep(func() { waiting = lockAside(r.locker, ctx, "k") }, "k")

	r.proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if is("release", "clean_up", "undo")(cmd) {
			return redistest.Cut
		}
		return redistest.Pass
	})
	if d.Fair { // the grant is a message
		r.proxy.HoldReplies(true)
	} else { // the head has to hear that it may try
		hook, _ := holding("acquire")
		r.proxy.OnReply(hook)
	}
	require.NoError(t, before.Unlock(bounded(t)))
	for _, s := range r.server { // one may be late to release it
		await(t, func() bool { return number(t, s, "HEXISTS", "k", before.Owner()) == 0 })
	}
	await(t, func() bool { return exists(t, r.server, "k") })
	cancel()
	require.ErrorIs(t, within(t, waiting).err, context.Canceled)
	r.proxy.OnReply(nil)
	r.proxy.Release()
	r.proxy.HoldReplies(false)
	require.True(t, exists(t, r.server, "k"))
	await(t, func() bool { return !exists(t, r.server, "k") })
	r.proxy.OnRequest(nil)
	r.tidy("k")
}

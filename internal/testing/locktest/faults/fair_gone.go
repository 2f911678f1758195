package faults

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// Owners that no caller here has, but that Redis may know: none comes back, and none keeps
// a place or the key.

func init() {
	register("F7_EnterArrivesAfterTheLoss", testEnterAfterLoss, fairOnly|inParts)
	register("F7_EnterArrivesAfterTheWait", testEnterAfterWait, fairOnly|inParts)
	register("F7_GrantAfterTheQueuesEnd", testGrantAfterQueue, fairOnly)
	register("F6_GrantToTheGoneLost", testGrantToGoneLost, fairOnly)
	register("F16_LeavesAfterALongOutage", testLeavesAfterOutage, fairOnly)
	register("F24_LostInARun", testLostInARun, fairOnly|inParts)
}

// stranger is an owner of an unknown client.
const stranger = "00000000-0000-4000-8000-000000000000:01"

// queueOver returns when the client of that owner no longer looks after the key's queue, as
// it has no waiters.
func (r *harness) queueOver(key, owner string) {
	r.T.Helper()
	locktest.Await(r.T, func() bool { return locktest.Listeners(r.T, r.Server, locktest.InboxOf(key, owner)) == 0 })
}

// An enter is held up on its way and sent again; its owner is served and loses the key. When
// the first call arrives, it puts no owner into the queue, whether or not others wait.
func testEnterAfterLoss(t *testing.T, k locktest.Kind) {
	for name, others := range map[string]bool{"others wait": true, "nobody waits": false} {
		k.Part(t, name, func(t *testing.T, k locktest.Kind) {
			var s locktest.Sockets
			r := newHarness(t, k, locktest.Options{Lease: 2 * locktest.Long, WaiterTTL: 2 * locktest.Long, GrantLease: 2 * locktest.Long}, s.Dialled)
			before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
			held, arrived := delayed(r.Proxy, "enter")
			waiting := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
			locktest.Within(t, held)
			s.Drop()
			r.AwaitQueue("k", 1)
			locktest.Within(t, arrived) // the second
			locktest.Await(t, func() bool {
				return locktest.Listeners(t, r.Server, locktest.InboxOf("k", locktest.Queued(t, r.Server, "k")[0])) == 1
			})
			lost := locktest.Next(t, before, waiting)
			var next <-chan locktest.Acquired
			if others {
				next = r.InQueue(locktest.Bounded(t), "k", 1)
			} else {
				r.queueOver("k", lost.Owner())
			}
			require.NoError(t, locktest.ErrOf(r.Locker.ForceUnlock(locktest.Bounded(t), "k")))
			require.ErrorIs(t, lost.Err(), holdfast.ErrLost)
			locktest.Await(t, func() bool { return tombstones(r) == 1 }, "it may come back")
			if others {
				require.NoError(t, locktest.Got(t, next).Unlock(locktest.Bounded(t)))
			}

			r.Proxy.Release()
			locktest.Within(t, arrived)
			require.Empty(t, r.Owner("k"), "it has entered once more")
			require.Empty(t, locktest.Queued(t, r.Server, "k"))
			r.Tidy("k")
		})
	}
}

// An enter is held up on its way, and its waiter gives up: before the answer to any
// attempt, or after that to the second.
func testEnterAfterWait(t *testing.T, k locktest.Kind) {
	for name, answered := range map[string]bool{"unanswered": false, "answered": true} {
		k.Part(t, name, func(t *testing.T, k locktest.Kind) {
			var s locktest.Sockets
			r := newHarness(t, k, locktest.Options{Lease: 2 * locktest.Long, WaiterTTL: 2 * locktest.Long, GrantLease: 2 * locktest.Long}, s.Dialled)
			before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
			held, arrived := delayed(r.Proxy, "enter")
			ctx, cancel := context.WithCancel(locktest.Bounded(t))
			defer cancel()
			leaving := locktest.GoLock(r.Locker, ctx, "k")
			locktest.Within(t, held)
			if answered {
				s.Drop()
				r.AwaitQueue("k", 1)
				locktest.Within(t, arrived) // the second
				r.InQueue(ctx, "k", 2)      // one enters after the answer
			}
			cancel()
			require.ErrorIs(t, locktest.Within(t, leaving).Err, context.Canceled)
			s.Drop()
			locktest.Await(t, func() bool { return tombstones(r) >= 1 && len(locktest.Queued(t, r.Server, "k")) == 0 }, "it may come back")

			r.Proxy.Release()
			locktest.Within(t, arrived)
			require.Empty(t, locktest.Queued(t, r.Server, "k"), "it has entered once more")
			r.passesOn(before)
		})
	}
}

// An owner that has been given up stands in the queue once more. Then Redis grants it the key,
// by a call of this client, which has no waiter for it any more: the key is given back immediately.
func testGrantAfterQueue(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: locktest.Long, GrantLease: locktest.Long})
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	leave := r.leaver("k", 1)
	gone := locktest.Queued(t, r.Server, "k")[0]
	leave()
	r.queueOver("k", l.Owner())
	r.Server.Do(t, "LPUSH", "redisson_lock_queue:{k}", gone)
	r.passesOn(l)
}

// An owner that has been given up stands in the queue once more, and is granted the key. The
// message is lost. A heartbeat of the others finds that, and the key is given back.
func testGrantToGoneLost(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: 10 * locktest.Long, GrantLease: 10 * locktest.Long})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	leave := r.leaver("k", 1)
	gone := locktest.Queued(t, r.Server, "k")[0]
	next := r.InQueue(locktest.Bounded(t), "k", 2)
	r.Answered("k")
	leave()
	r.AwaitQueue("k", 1)
	r.Server.Do(t, "LPUSH", "redisson_lock_queue:{k}", gone)
	r.Proxy.HoldReplies(true)
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	require.Equal(t, gone, r.Owner("k"))
	r.Proxy.Cut()
	r.Proxy.HoldReplies(false)
	require.NoError(t, locktest.Got(t, next).Unlock(locktest.Bounded(t)))
	r.Tidy("k")
}

// A wait is given up while Redis is away, for longer than a lease. When it is back, the owner
// leaves the queue, where it would get its turn for as long as its client looks alive.
func testLeavesAfterOutage(t *testing.T, k locktest.Kind) {
	const lease = 500 * time.Millisecond
	r := newHarness(t, k, locktest.Options{Lease: lease, WaiterTTL: locktest.Long, GrantLease: locktest.Long})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k", holdfast.FixedLease(locktest.Long))
	ctx, cancel := context.WithCancel(locktest.Bounded(t))
	leaving := r.InQueue(ctx, "k", 1)
	r.cutOff()
	cancel()
	<-leaving
	time.Sleep(4 * lease) // the outage
	r.Proxy.Refuse(false)
	r.AwaitQueue("k", 0)
	r.passesOn(before)
}

// Another owner has the key that a run was granted, after one member was served. When its
// client finds out, it gives up the run's place, whether or not others wait.
func testLostInARun(t *testing.T, k locktest.Kind) {
	for name, others := range map[string]bool{"others wait": true, "nobody waits": false} {
		k.Part(t, name, func(t *testing.T, k locktest.Kind) {
			const lease = 12 * time.Second
			r := newHarness(t, k, locktest.Options{Lease: lease, Handover: ptr(lease), GrantLease: lease, WaiterTTL: 2 * time.Second})
			lost := r.inRun(r.Other)
			var last <-chan locktest.Acquired
			if others {
				last = r.InQueue(locktest.Bounded(t), "k", 2)
			} else {
				r.queueOver("k", lost.Owner())
			}
			behind := locktest.Queued(t, r.Server, "k")[1:]
			r.Server.Do(t, "EVAL", "redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('HDEL', KEYS[1], ARGV[2])",
				"1", "k", stranger, lost.Owner())
			locktest.Within(t, lost.Done())
			locktest.Await(t, func() bool { return slices.Equal(behind, locktest.Queued(t, r.Server, "k")) }, "a served owner stands in the queue")
			r.Server.Do(t, "DEL", "k")
			if others {
				require.NoError(t, locktest.Got(t, last).Unlock(locktest.Bounded(t)))
			}
			r.Tidy("k")
		})
	}
}

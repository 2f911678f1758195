package faults

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// Owners that no caller here has, but that Redis may know: none comes back, and none keeps
// a place or the key.

func init() {
	registerFair("F7_EnterArrivesAfterTheLoss", testEnterAfterLoss).parts = true
	registerFair("F7_EnterArrivesAfterTheWait", testEnterAfterWait).parts = true
	registerFair("F7_GrantAfterTheLinesEnd", testGrantAfterLine)
	registerFair("F6_GrantToTheGoneLost", testGrantToGoneLost)
	registerFair("F16_LeavesAfterALongOutage", testLeavesAfterOutage)
	registerFair("F24_LostInARun", testLostInARun).parts = true
}

// stranger is an owner of an unknown client.
const stranger = "00000000-0000-4000-8000-000000000000:01"

// lineOver returns when the client of that owner no longer looks after the key's queue, as
// it has no waiters.
func (r *harness) lineOver(key, owner string) {
	r.T.Helper()
	Await(r.T, func() bool { return Listeners(r.T, r.Server, InboxOf(key, owner)) == 0 })
}

// An enter is held up on its way and sent again; its owner is served and loses the key. When
// the first call arrives, it puts no owner into the queue, whether or not others wait.
func testEnterAfterLoss(t *testing.T, d Kind) {
	for name, others := range map[string]bool{"others wait": true, "nobody waits": false} {
		d.Part(t, name, func(t *testing.T, d Kind) {
			var s Sockets
			r := newHarness(t, d, Options{Lease: 2 * Long, WaiterTTL: 2 * Long, GrantLease: 2 * Long}, s.Dialled)
			before := Lock(t, r.Other, Bounded(t), "k")
			held, arrived := delayed(r.Proxy, "enter")
			waiting := GoLock(r.Locker, Bounded(t), "k")
			Within(t, held)
			s.Drop()
			Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 1 })
			Within(t, arrived) // the second
			Await(t, func() bool { return Listeners(t, r.Server, InboxOf("k", Queued(t, r.Server, "k")[0])) == 1 })
			require.NoError(t, before.Unlock(Bounded(t)))
			lost := Got(t, waiting)
			var next <-chan Acquired
			if others {
				next = r.InLine(Bounded(t), "k", 1)
			} else {
				r.lineOver("k", lost.Owner())
			}
			_, err := r.Locker.ForceUnlock(Bounded(t), "k")
			require.NoError(t, err)
			require.ErrorIs(t, lost.Err(), holdfast.ErrLost)
			Await(t, func() bool { return tombstones(r) == 1 }, "it may come back")
			if others {
				require.NoError(t, Got(t, next).Unlock(Bounded(t)))
			}

			r.Proxy.Release()
			Within(t, arrived)
			require.Empty(t, r.Owner("k"), "it has entered once more")
			require.Empty(t, Queued(t, r.Server, "k"))
			r.Tidy("k")
		})
	}
}

// An enter is held up on its way, and its waiter gives up: before the answer to any
// attempt, or after that to the second.
func testEnterAfterWait(t *testing.T, d Kind) {
	for name, answered := range map[string]bool{"unanswered": false, "answered": true} {
		d.Part(t, name, func(t *testing.T, d Kind) {
			var s Sockets
			r := newHarness(t, d, Options{Lease: 2 * Long, WaiterTTL: 2 * Long, GrantLease: 2 * Long}, s.Dialled)
			before := Lock(t, r.Other, Bounded(t), "k")
			held, arrived := delayed(r.Proxy, "enter")
			ctx, cancel := context.WithCancel(Bounded(t))
			defer cancel()
			leaving := GoLock(r.Locker, ctx, "k")
			Within(t, held)
			if answered {
				s.Drop()
				Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 1 })
				Within(t, arrived)    // the second
				r.InLine(ctx, "k", 2) // one enters after the answer
			}
			cancel()
			require.ErrorIs(t, Within(t, leaving).Err, context.Canceled)
			s.Drop()
			Await(t, func() bool { return tombstones(r) >= 1 && len(Queued(t, r.Server, "k")) == 0 }, "it may come back")

			r.Proxy.Release()
			Within(t, arrived)
			require.Empty(t, Queued(t, r.Server, "k"), "it has entered once more")
			r.passesOn(before)
		})
	}
}

// An owner that has been given up stands in the queue once more. Then Redis grants it the key,
// by a call of this client, which has no waiter for it any more: the key is given back at once.
func testGrantAfterLine(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: Long, GrantLease: Long})
	l := Lock(t, r.Locker, Bounded(t), "k")
	leave := r.leaver("k", 1)
	gone := Queued(t, r.Server, "k")[0]
	leave()
	r.lineOver("k", l.Owner())
	r.Server.Do(t, "LPUSH", "redisson_lock_queue:{k}", gone)
	r.passesOn(l)
}

// An owner that has been given up stands in the queue once more, and is granted the key. The
// message is lost. A heartbeat of the others finds that, and the key is given back.
func testGrantToGoneLost(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, WaiterTTL: 10 * Long, GrantLease: 10 * Long})
	before := Lock(t, r.Other, Bounded(t), "k")
	leave := r.leaver("k", 1)
	gone := Queued(t, r.Server, "k")[0]
	next := r.InLine(Bounded(t), "k", 2)
	r.Answered("k")
	leave()
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 1 })
	r.Server.Do(t, "LPUSH", "redisson_lock_queue:{k}", gone)
	r.Proxy.HoldReplies(true)
	require.NoError(t, before.Unlock(Bounded(t)))
	require.Equal(t, gone, r.Owner("k"))
	r.Proxy.Cut()
	r.Proxy.HoldReplies(false)
	require.NoError(t, Got(t, next).Unlock(Bounded(t)))
	r.Tidy("k")
}

// A wait is given up while Redis is away, for longer than a lease. When it is back, the owner
// leaves the queue, where it would get its turn for as long as its client looks alive.
func testLeavesAfterOutage(t *testing.T, d Kind) {
	const lease = 500 * time.Millisecond
	r := newHarness(t, d, Options{Lease: lease, WaiterTTL: Long, GrantLease: Long})
	before := Lock(t, r.Other, Bounded(t), "k", holdfast.FixedLease(Long))
	ctx, cancel := context.WithCancel(Bounded(t))
	leaving := r.InLine(ctx, "k", 1)
	r.cutOff()
	cancel()
	<-leaving
	time.Sleep(4 * lease) // the outage
	r.Proxy.Refuse(false)
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 0 })
	r.passesOn(before)
}

// Another owner has the key that a run was granted, after one member was served. When its
// client finds out, it gives up the run's place, whether or not others wait.
func testLostInARun(t *testing.T, d Kind) {
	for name, others := range map[string]bool{"others wait": true, "nobody waits": false} {
		d.Part(t, name, func(t *testing.T, d Kind) {
			const lease = 12 * time.Second
			r := newHarness(t, d, Options{Lease: lease, Handover: ptr(lease), GrantLease: Long, WaiterTTL: 2 * time.Second})
			lost := r.inRun(r.Other)
			var last <-chan Acquired
			if others {
				last = r.InLine(Bounded(t), "k", 2)
			} else {
				r.lineOver("k", lost.Owner())
			}
			behind := Queued(t, r.Server, "k")[1:]
			r.Server.Do(t, "EVAL", "redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('HDEL', KEYS[1], ARGV[2])",
				"1", "k", stranger, lost.Owner())
			Within(t, lost.Done())
			Await(t, func() bool { return slices.Equal(behind, Queued(t, r.Server, "k")) }, "a served owner stands in the queue")
			r.Server.Do(t, "DEL", "k")
			if others {
				require.NoError(t, Got(t, last).Unlock(Bounded(t)))
			}
			r.Tidy("k")
		})
	}
}

package faults

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() {
	register("F7_AcquireArrivesAfterItsUndo", testAcquireArrivesLate, inParts)
	register("F7_NestedCallArrivesAfterTheLease", testNestedArrivesLate)
	register("F6_EnterArrivesAfterTheRelease", testEnterAfterRelease, fairOnly|inParts)
	register("F6_ConfirmedTooLate", testConfirmedTooLate, fairOnly)
	register("F24_PlacesLostOneAfterAnother", testPlacesLost, fairOnly)
}

// delayed holds the next command of that verb back, until the proxy's Release.
// held tells that it is on its way, arrived that Redis has answered it.
func delayed(w *locktest.Proxies, name string) (held <-chan struct{}, arrived <-chan struct{}) {
	answered := map[*redistest.Proxy]<-chan struct{}{}
	held = w.OnAll(func(p *redistest.Proxy) (sent <-chan struct{}) {
		sent, answered[p] = delayedOn(p, name)
		return sent
	})
	return held, w.OnAll(func(p *redistest.Proxy) <-chan struct{} { return answered[p] })
}

func delayedOn(p *redistest.Proxy, name string) (held <-chan struct{}, arrived <-chan struct{}) {
	sent, answered := make(chan struct{}), make(chan struct{}, 1)
	var command []string
	p.OnRequest(func(cmd []string) redistest.Verdict {
		if locktest.Verb(cmd) != name {
			return redistest.Pass
		}
		p.OnRequest(nil)
		command = cmd
		close(sent)
		return redistest.Hold
	})
	p.OnReply(func(cmd []string) redistest.Verdict {
		select {
		case <-sent:
			if slices.Equal(cmd, command) {
				loop.Poke(answered)
			}
		default:
		}
		return redistest.Pass
	})
	return sent, answered
}

// An acquire is held up on its way, its connection is lost, and the undo overtakes it.
// The caller has given up, and must not become the holder when the acquire arrives.
func testAcquireArrivesLate(t *testing.T, k locktest.Kind) {
	for name, how := range map[string]struct {
		fenced bool
		cancel bool
	}{
		"given up":          {false, false},
		"given up, fenced":  {true, false},
		"cancelled":         {false, true},
		"cancelled, fenced": {true, true},
	} {
		k.Part(t, name, func(t *testing.T, k locktest.Kind) {
			var s locktest.Sockets
			r := newHarness(t, k, locktest.Options{Lease: locktest.Long, Fencing: how.fenced}, s.Dialled)
			held, arrived := delayed(r.Proxy, "acquire")
			ctx, cancel := context.WithCancel(locktest.Bounded(t))
			defer cancel()
			result := locktest.Go(func() error { return locktest.ErrOf(r.Locker.TryLock(ctx, "k")) })
			locktest.Within(t, held)
			if how.cancel {
				cancel()
				require.ErrorIs(t, locktest.Within(t, result), context.Canceled)
				s.Drop()
			} else {
				s.Drop()
				require.ErrorIs(t, locktest.Within(t, result), holdfast.ErrUnknown)
			}
			locktest.Await(t, func() bool { return tombstones(r) == 1 })
			r.Proxy.Release()
			locktest.Within(t, arrived)
			require.False(t, locktest.Exists(t, r.Server, "k"))
			l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
			r.passesOn(l)
		})
	}
}

// tombstones is how many owners have been given up by an undo, on every node.
func tombstones(r *harness) int {
	least := math.MaxInt
	r.Server.Each(func(s locktest.Server) {
		least = min(least, len(locktest.Strings(r.T, s, "KEYS", "holdfast_gone:*")))
	})
	return least
}

// A nested call arrives when its lease is over and another owner holds the key.
func testNestedArrivesLate(t *testing.T, k locktest.Kind) {
	var s locktest.Sockets
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long}, s.Dialled)
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	held, arrived := delayed(r.Proxy, "set_entries")
	result := locktest.Go(func() error { return locktest.ErrOf(r.Locker.TryLock(l.Bind(locktest.Bounded(t)), "k")) })
	locktest.Within(t, held)
	s.Drop()
	require.ErrorIs(t, locktest.Within(t, result), holdfast.ErrUnknown)
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	after := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	r.Proxy.Release()
	locktest.Within(t, arrived)
	require.Equal(t, 1, r.Entries("k"))
	r.passesOn(after)
}

// Calls and answers that arrive when they are no longer needed, and places that are lost.

// An enter is held up on its way and sent again; its owner is served and unlocks. When the
// first call arrives, it puts no owner into the queue. No heartbeat would repair that: a
// silent client is dead much later.
func testEnterAfterRelease(t *testing.T, k locktest.Kind) {
	for name, c := range map[string]struct {
		run  bool
		call []holdfast.LockOption
	}{
		"alone":     {},
		"confirmed": {call: []holdfast.LockOption{holdfast.FixedLease(locktest.Long)}},
		"in a run":  {run: true},
	} {
		k.Part(t, name, func(t *testing.T, k locktest.Kind) {
			var s locktest.Sockets
			r := newHarness(t, k, locktest.Options{Lease: 2 * locktest.Long, WaiterTTL: 2 * locktest.Long, GrantLease: 2 * locktest.Long, Handover: ptr(locktest.Long)}, s.Dialled)
			before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
			n := 1
			var first <-chan locktest.Acquired
			if c.run {
				first, n = r.InQueue(locktest.Bounded(t), "k", 1), 2
			}
			held, arrived := delayed(r.Proxy, "enter")
			waiting := locktest.GoLock(r.Locker, locktest.Bounded(t), "k", c.call...)
			locktest.Within(t, held)
			s.Drop()
			r.AwaitQueue("k", n)
			locktest.Within(t, arrived) // the second
			r.Proxy.OnRequest(nil)
			rival := r.OtherInQueue("k", n+1)
			locktest.Await(t, func() bool {
				return locktest.Listeners(t, r.Server, locktest.InboxOf("k", locktest.Queued(t, r.Server, "k")[0])) == 1
			})
			require.NoError(t, before.Unlock(locktest.Bounded(t)))
			if c.run {
				require.NoError(t, locktest.Got(t, first).Unlock(locktest.Bounded(t)))
			}
			require.NoError(t, locktest.Got(t, waiting).Unlock(locktest.Bounded(t)))
			l := locktest.Got(t, rival)
			r.Proxy.Release()
			locktest.Within(t, arrived)
			require.Empty(t, locktest.Queued(t, r.Server, "k"), "it has entered once more")
			require.NoError(t, l.Unlock(locktest.Bounded(t)))
		})
	}
}

// Java drops one head after the other: each is noticed by a heartbeat, also when the first
// has entered again, at the end.
func testPlacesLost(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: 2 * time.Second})
	before, first := r.heldAndWanted("k")
	second := r.InQueue(locktest.Bounded(t), "k", 2)
	looks := r.counting()
	for range 2 {
		head := locktest.Queued(t, r.Server, "k")[0]
		r.Server.Do(t, "LREM", locktest.QueueOf("k"), "1", head)
		r.Server.Do(t, "ZREM", locktest.ScoresOf("k"), head)
		r.AwaitQueue("k", 2)
	}
	require.Less(t, looks("heartbeat"), 15, "not before the scores are moved on, after 6 s")
	r.passesOn(before, first, second)
}

// A confirmation has set the lease, and its answer comes when that is over and another has
// the key. No caller gets a lease that has ended: the waiter enters again.
func testConfirmedTooLate(t *testing.T, k locktest.Kind) {
	const lease = 2 * time.Second // less than a call may take
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, WaiterTTL: time.Second})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	waiting := r.InQueue(locktest.Bounded(t), "k", 1, holdfast.FixedLease(lease))
	rival := r.OtherInQueue("k", 2)
	held := r.holdReplies("confirm")
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	locktest.Within(t, held)
	l := locktest.Got(t, rival)
	r.letGo()
	locktest.Await(t, func() bool { return len(waiting) == 1 || len(locktest.Queued(t, r.Server, "k")) == 1 })
	require.Empty(t, waiting, "its lease is over")
	r.passesOn(l, waiting)
}

package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// Calls and answers that arrive when they are no longer needed, and places that are lost.

func init() {
	registerFair("F6_EnterArrivesAfterTheRelease", testEnterAfterRelease).parts = true
	registerFair("F6_ConfirmedTooLate", testConfirmedTooLate)
	registerFair("F24_PlacesLostOneAfterAnother", testPlacesLost)
}

// An enter is held up on its way and sent again; its owner is served and unlocks. When the
// first call arrives, it puts no owner into the queue. No heartbeat would repair that: a
// silent client is dead much later.
func testEnterAfterRelease(t *testing.T, d Kind) {
	for name, c := range map[string]struct {
		run  bool
		call []holdfast.LockOption
	}{
		"alone":     {},
		"confirmed": {call: []holdfast.LockOption{holdfast.FixedLease(Long)}},
		"in a run":  {run: true},
	} {
		d.Part(t, name, func(t *testing.T, d Kind) {
			var s Sockets
			r := newHarness(t, d, Options{Lease: 2 * Long, Stale: 2 * Long, FirstLease: 2 * Long, Handover: ptr(Long)}, s.Dialled)
			before := Lock(t, r.Other, Bounded(t), "k")
			n := 1
			var first <-chan Acquired
			if c.run {
				first, n = r.InLine(Bounded(t), "k", 1), 2
			}
			held, arrived := delayed(r.Proxy, "enter")
			waiting := GoLock(r.Locker, Bounded(t), "k", c.call...)
			Within(t, held)
			s.Drop()
			Await(t, func() bool { return len(Queued(t, r.Server, "k")) == n })
			Within(t, arrived) // the second
			r.Proxy.OnRequest(nil)
			rival := GoLock(r.Other, Bounded(t), "k")
			Await(t, func() bool { return len(Queued(t, r.Server, "k")) == n+1 })
			Await(t, func() bool { return Listeners(t, r.Server, InboxOf("k", Queued(t, r.Server, "k")[0])) == 1 })
			require.NoError(t, before.Unlock(Bounded(t)))
			if c.run {
				require.NoError(t, Got(t, first).Unlock(Bounded(t)))
			}
			require.NoError(t, Got(t, waiting).Unlock(Bounded(t)))
			l := Got(t, rival)
			r.Proxy.Release()
			Within(t, arrived)
			require.Empty(t, Queued(t, r.Server, "k"), "it has entered once more")
			require.NoError(t, l.Unlock(Bounded(t)))
		})
	}
}

// Java drops one head after the other: each is noticed by a heartbeat, also when the first
// has entered again, at the end.
func testPlacesLost(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, Stale: 2 * time.Second})
	before := Lock(t, r.Other, Bounded(t), "k")
	first := r.InLine(Bounded(t), "k", 1)
	second := r.InLine(Bounded(t), "k", 2)
	looks, began := r.counting(), time.Now()
	for range 2 {
		head := Queued(t, r.Server, "k")[0]
		r.Server.Do(t, "LREM", QueueOf("k"), "1", head)
		r.Server.Do(t, "ZREM", ScoresOf("k"), head)
		Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 2 })
	}
	require.Less(t, time.Since(began), 6*time.Second, "after %d heartbeats of 400 ms: not before the scores are moved on", looks("heartbeat"))
	require.NoError(t, before.Unlock(Bounded(t)))
	require.NoError(t, Got(t, first).Unlock(Bounded(t)))
	require.NoError(t, Got(t, second).Unlock(Bounded(t)))
}

// A confirmation has set the lease, and its answer comes when that is over and another has
// the key. No caller gets a lease that has ended: the waiter enters again.
func testConfirmedTooLate(t *testing.T, d Kind) {
	const lease = 2 * time.Second // less than a call may take
	r := newHarness(t, d, Options{Lease: Long, FirstLease: Long, Stale: time.Second})
	before := Lock(t, r.Other, Bounded(t), "k")
	waiting := r.InLine(Bounded(t), "k", 1, holdfast.FixedLease(lease))
	rival := GoLock(r.Other, Bounded(t), "k")
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 2 })
	hook, held := Holding("confirm")
	r.Proxy.OnReply(hook)
	require.NoError(t, before.Unlock(Bounded(t)))
	Within(t, held)
	l := Got(t, rival)
	r.Proxy.OnReply(nil)
	r.Proxy.Release()
	Await(t, func() bool { return len(waiting) == 1 || len(Queued(t, r.Server, "k")) == 1 })
	require.Empty(t, waiting, "its lease is over")
	require.NoError(t, l.Unlock(Bounded(t)))
	require.NoError(t, Got(t, waiting).Unlock(Bounded(t)))
	r.Tidy("k")
}

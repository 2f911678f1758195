package locktest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

// Calls and answers that arrive when nobody needs them any more, and places that are
// lost.

func init() {
	registerFair("F6_EnterArrivesAfterTheRelease", testEnterAfterRelease)
	registerFair("F6_ConfirmedTooLate", testConfirmedTooLate)
	registerFair("F24_PlacesLostOneAfterAnother", testPlacesLost)
}

// An enter is held up on its way and sent again; its owner is served and unlocks.
// When the first arrives, nobody enters by it. No heartbeat would clear up: who is silent
// is dead much later.
func testEnterAfterRelease(t *testing.T, d Kind) {
	for name, c := range map[string]struct {
		run  bool
		call []holdfast.LockOption
	}{
		"alone":     {},
		"confirmed": {call: []holdfast.LockOption{holdfast.FixedLease(long)}},
		"in a run":  {run: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s sockets
			r := newFaultRig(t, d, Options{Lease: 2 * long, Stale: 2 * long, FirstLease: 2 * long, Handover: ptr(long)}, s.dialled)
			before := lock(t, r.other, bounded(t), "k")
			n := 1
			var first <-chan acquired
			if c.run {
				first, n = r.inLine(bounded(t), "k", 1), 2
			}
			held, arrived := delayed(r.proxy, "enter")
			waiting := lockAside(r.locker, bounded(t), "k", c.call...)
			within(t, held)
			s.drop()
			await(t, func() bool { return len(queued(t, r.server, "k")) == n })
			within(t, arrived) // the second
			r.proxy.OnRequest(nil)
			rival := lockAside(r.other, bounded(t), "k")
			await(t, func() bool { return len(queued(t, r.server, "k")) == n+1 })
			await(t, func() bool { return listeners(t, r.server, inboxOf("k", queued(t, r.server, "k")[0])) == 1 })
			require.NoError(t, before.Unlock(bounded(t)))
			if c.run {
				require.NoError(t, got(t, first).Unlock(bounded(t)))
			}
			require.NoError(t, got(t, waiting).Unlock(bounded(t)))
			l := got(t, rival)
			r.proxy.Release()
			within(t, arrived)
			require.Empty(t, queued(t, r.server, "k"), "it has entered once more")
			require.NoError(t, l.Unlock(bounded(t)))
		})
	}
}

// Java drops one head after the other: each is noticed by a heartbeat, also when the first
// has entered again, at the end.
func testPlacesLost(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, Stale: 2 * time.Second})
	before := lock(t, r.other, bounded(t), "k")
	first := r.inLine(bounded(t), "k", 1)
	second := r.inLine(bounded(t), "k", 2)
	looks, began := r.counting(), time.Now()
	for range 2 {
		head := queued(t, r.server, "k")[0]
		r.server.Do(t, "LREM", queueOf("k"), "1", head)
		r.server.Do(t, "ZREM", scoresOf("k"), head)
		await(t, func() bool { return len(queued(t, r.server, "k")) == 2 })
	}
	require.Less(t, time.Since(began), 6*time.Second, "after %d heartbeats of 400 ms: not before the scores are moved on", looks("heartbeat"))
	require.NoError(t, before.Unlock(bounded(t)))
	require.NoError(t, got(t, first).Unlock(bounded(t)))
	require.NoError(t, got(t, second).Unlock(bounded(t)))
}

// A confirmation has set the lease, and its answer comes when that is over and
// another has the key. Nobody is given a lease that has ended: the waiter enters
// again.
func testConfirmedTooLate(t *testing.T, d Kind) {
	const lease = 2 * time.Second // less than a call may take
	r := newFaultRig(t, d, Options{Lease: long, FirstLease: long, Stale: time.Second})
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1, holdfast.FixedLease(lease))
	rival := lockAside(r.other, bounded(t), "k")
	await(t, func() bool { return len(queued(t, r.server, "k")) == 2 })
	hook, held := holding("confirm")
	r.proxy.OnReply(hook)
	require.NoError(t, before.Unlock(bounded(t)))
	within(t, held)
	l := got(t, rival)
	r.proxy.OnReply(nil)
	r.proxy.Release()
	await(t, func() bool { return len(waiting) == 1 || len(queued(t, r.server, "k")) == 1 })
	require.Empty(t, waiting, "its lease is over")
	require.NoError(t, l.Unlock(bounded(t)))
	require.NoError(t, got(t, waiting).Unlock(bounded(t)))
	r.tidy("k")
}

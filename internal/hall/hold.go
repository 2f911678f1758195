package hall

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// hold is one hold of a key in Redis. Several leases may live in it one after
// another (local hand-over); the field in Redis stays that of the first. Small,
// as are lease and queue: services hold 100 000 of them.
type hold struct {
	watchdog.Lease
	hall    *Hall         // immutable
	queue   *queue        // immutable
	owner   string        // the field in Redis; immutable
	granted time.Duration // when, since the hall's epoch; immutable
	fences  *fences       // nil without fencing
	lease   *lease        // the present lease; guarded by the shard's mu
	plain   bool          // see Terms.plain; immutable
	tainted bool          // a nested call of unknown outcome: never handed over; guarded by the shard's mu
	over    bool          // it was lost; guarded by the shard's mu
}

// newHold starts to look after a hold that Redis granted to a call that began
// at start. It does not yet belong to q.
func (h *Hall) newHold(q *queue, owner string, t Terms, start time.Time, a scripts.Acquired) *hold {
	d := &hold{hall: h, queue: q, owner: owner, granted: h.now(), plain: t.plain()}
	if a.Fence != 0 {
		d.fences = &fences{first: a.Fence, present: a.Fence, last: a.FenceEnd}
	}
	h.watchdog.Watch(d, watchdog.Terms{Anchor: start, Lease: t.Lease, Renew: !t.Fixed, MaxHold: t.MaxHold})
	return d
}

func (d *hold) shard() *shard { return d.hall.shardOf(d.queue.key) }

// renew asks for a batch of the watchdog's.
func (h *Hall) renew(ctx context.Context, holds []*hold, answers []watchdog.Answer) {
	keys, owners := make([]string, len(holds)), make([]string, len(holds))
	for i, d := range holds {
		keys[i], owners[i] = d.queue.key, d.owner
	}
	said := make([]scripts.Answer, len(holds))
	if err := h.backend.Renew(noDeadline{ctx}, h.Lease, keys, owners, said); err != nil {
		h.Log.Warn("holdfast: renewal failed", "leases", len(holds), "error", err) // of one key, or of all
	}
	for i, a := range said {
		switch a {
		case scripts.Renewed:
			answers[i] = watchdog.Renewed
		case scripts.NotOurs:
			answers[i] = watchdog.NotOurs
		}
	}
}

// holdEnded is told by the watchdog that a hold is over although nobody
// released it.
func (h *Hall) holdEnded(d *hold, why error) {
	h.lose(d, why)
	if why == watchdog.ErrMaxHold {
		h.undo(d)
	}
}

// lose ends a hold, and the lease in it, by loss.
func (h *Hall) lose(d *hold, why error) {
	h.watchdog.Forget(d)
	s := d.shard()
	s.mu.Lock()
	d.over = true
	reason := lost(why)
	var told signals
	if d.lease != nil {
		told = d.lease.end(reason)
	}
	if q := d.queue; q.hold == d {
		q.hold = nil
		h.settle(s, q)
	}
	s.mu.Unlock()
	told.fire(reason)
	if told.any {
		h.Log.Warn("holdfast: lease lost", "key", quote(d.queue.key), "reason", why)
	}
}

// until is how long a hold may last in Redis that nobody here renews any more: a
// lease from its last renewal.
func (h *Hall) until(d *hold) time.Time {
	until := time.Now().Add(h.Lease)
	if trusted := d.Deadline(); trusted.After(until) { // a longer fixed lease
		until = trusted
	}
	return until
}

// undo frees a key in Redis whose hold nobody here has any more, in the
// background, for as long as the hold could last: a lease from its last renewal.
func (h *Hall) undo(d *hold) {
	h.watchdog.Forget(d)
	until, used := h.until(d), d.fences.used()
	h.background(func() {
		_ = h.persist(until, func(ctx context.Context) error {
			_, err := h.backend.Release(ctx, d.queue.key, d.owner, used)
			return err
		})
	})
}

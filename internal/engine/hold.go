package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// hold is one hold of a key in Redis. Several leases may live in it one after
// another (local hand-over); the field in Redis stays that of the first. Small,
// as are lease and queue: services hold 100 000 of them.
type hold struct {
	watchdog.Lease
	engine  *Engine       // immutable
	queue   *queue        // immutable
	owner   string        // the field in Redis; immutable
	granted time.Duration // when, since the engine's epoch; immutable
	extras  *extras       // nil if there are none; immutable
	lease   *lease        // the present lease; guarded by the shard's mu
	plain   bool          // see Terms.plain; immutable
	tainted bool          // a nested call of unknown outcome: never handed over; guarded by the shard's mu
	over    bool          // it was lost; guarded by the shard's mu
	long    bool          // tellLongHold has told; guarded by the shard's mu
}

// extras are what few holds have.
type extras struct {
	fences fences // zero without fencing
	run    run    // zero unless a fair queue has granted the hold
}

func (d *hold) fences() *fences {
	if d.extras == nil || d.extras.fences.first == 0 {
		return nil
	}
	return &d.extras.fences
}

func (d *hold) run() *run {
	if d.extras == nil {
		return nil
	}
	return &d.extras.run
}

// newHold starts to look after a hold that Redis granted to a call that began
// at start. It does not yet belong to q.
func (h *Engine) newHold(q *queue, owner string, t Terms, start time.Time, a scripts.Acquired) *hold {
	return h.newHoldOf(q, owner, t, start, a, run{})
}

// newHoldOf is newHold for one that a fair queue has granted.
func (h *Engine) newHoldOf(q *queue, owner string, t Terms, start time.Time, a scripts.Acquired, r run) *hold {
	d := &hold{engine: h, queue: q, owner: owner, granted: h.now(), plain: t.plain()}
	if a.Fence != 0 || r.doubt || len(r.members) > 0 {
		d.extras = &extras{fences: fences{first: a.Fence, present: a.Fence, last: a.FenceEnd}, run: r}
	}
	h.watchdog.Watch(d, watchdog.Terms{Anchor: start, Lease: t.Lease, Renew: !t.Fixed, MaxHold: t.MaxHold})
	return d
}

func (d *hold) shard() *shard { return d.engine.shardOf(d.queue.key) }

// batch is the room that a call of renew needs. It is kept for the next, as
// with 100 000 leases there are hundreds of calls a second.
type batch struct {
	keys, owners []string
	said         []scripts.Answer
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// renew asks for a batch of the watchdog's.
func (h *Engine) renew(ctx context.Context, holds []*hold, answers []watchdog.Answer) {
	b := batches.Get().(*batch)
	debug := h.Log.Enabled(ctx, slog.LevelDebug)
	for _, d := range holds {
		if debug && h.now()-d.granted > h.Lease {
			h.tellLongHold(d)
		}
		b.keys, b.owners = append(b.keys, d.queue.key), append(b.owners, d.owner)
	}
	b.said = slices.Grow(b.said, len(holds))[:len(holds)]
	if err := h.backend.Renew(noDeadline{ctx}, h.Lease, b.keys, b.owners, b.said); err != nil {
		h.Log.Warn("holdfast: renewal failed", "leases", len(holds), "error", h.ours(err)) // of one key, or of all
	}
	for i, a := range b.said {
		switch a {
		case scripts.Renewed:
			answers[i] = watchdog.Renewed
		case scripts.NotOurs:
			answers[i] = watchdog.NotOurs
		}
	}
	b.empty()
	batches.Put(b)
}

// tellLongHold logs, once, that a key has been held for longer than a lease. Those of this
// locker that wait for it may wait for themselves: without the context that is bound to
// the lease.
func (h *Engine) tellLongHold(d *hold) {
	s := d.shard()
	s.mu.Lock()
	told, waiting := d.long, d.queue.waiting
	d.long = true
	s.mu.Unlock()
	if !told {
		h.Log.Debug("holdfast: key held for longer than a lease",
			"key", quote(d.queue.key), "held", h.now()-d.granted, "waiting", waiting)
	}
}

// empty forgets what was asked, and what was said, but keeps the room.
func (b *batch) empty() {
	clear(b.keys)
	clear(b.owners)
	clear(b.said)
	b.keys, b.owners, b.said = b.keys[:0], b.owners[:0], b.said[:0]
}

// holdEnded is told by the watchdog that a hold is over although nobody
// released it.
func (h *Engine) holdEnded(d *hold, why error) {
	h.lose(d, why)
	if why == watchdog.ErrMaxHold {
		h.undo(d)
	}
}

// lose ends a hold, and the lease in it, by loss.
func (h *Engine) lose(d *hold, why error) {
	s := d.shard()
	s.mu.Lock()
	mine := d.queue.hold == d
	reason := lost(why)
	told := h.revoke(d, reason)
	if mine {
		h.settle(s, d.queue)
	}
	s.mu.Unlock()
	told.fire(reason)
	if told.any {
		h.Log.Warn("holdfast: lease lost", "key", quote(d.queue.key), "reason", why)
	}
}

// revoke is lose under mu, without its last steps: the queue is not settled,
// and the caller fires what it returns.
func (h *Engine) revoke(d *hold, reason error) (told signals) {
	h.watchdog.Forget(d)
	d.over = true
	if d.lease != nil {
		told = d.lease.end(reason)
	}
	if q := d.queue; q.hold == d {
		q.hold = nil
		if h.fair != nil {
			h.abandon(q, d)
		}
		h.reportLost(d)
	}
	return told
}

// reportLost tells the backend of a plain lock that nobody will end d any more.
func (h *Engine) reportLost(d *hold) {
	if h.plain != nil {
		h.plain.Lost(d.queue.key, d.owner)
	}
}

// until is how long a hold may last in Redis that nobody here renews any more: a
// lease from its last renewal.
func (h *Engine) until(d *hold) time.Time {
	until := time.Now().Add(h.Lease)
	if trusted := d.Deadline(); trusted.After(until) { // a longer fixed lease
		until = trusted
	}
	return until
}

// free makes one attempt to end a hold in Redis.
func (h *Engine) free(ctx context.Context, d *hold, lastFence int64) (scripts.Released, error) {
	if h.fair != nil {
		return h.releaseFair(ctx, d, lastFence)
	}
	return h.plain.Release(ctx, d.queue.key, d.owner, lastFence)
}

// undo frees a key in Redis whose hold nobody here has any more, in the
// background, for as long as the hold could last: a lease from its last renewal.
func (h *Engine) undo(d *hold) {
	h.watchdog.Forget(d)
	until, used := h.until(d), d.fences().used()
	h.background(func() {
		if h.persist(until, func(ctx context.Context) error {
			_, err := h.free(ctx, d, used)
			return err
		}) != nil {
			h.reportLost(d)
		}
	})
}

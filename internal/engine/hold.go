package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// hold is one hold of a key in Redis. Several sections may run in it in turn (local
// hand-over); the field in Redis stays that of the first. hold, section and keyState are
// small, as services hold 100 000 of them.
type hold struct {
	watchdog.Lease
	watchdog *watchdog.Watchdog[*hold] // set by newHold
	key      *keyState                 // immutable
	owner    string                    // the field in Redis; immutable
	granted  time.Duration             // when, by Calls.Now; immutable
	extras   *extras                   // nil if there are none; immutable
	section  *section                  // the present one; guarded by the shard's lock
	first    section                   // in place, which saves an allocation
	plain    bool                      // see Terms.plain; immutable
	tainted  bool                      // a nested call may still arrive, so never handed over; guarded by the shard's lock
	over     bool                      // lost; guarded by the shard's lock
	long     bool                      // logLongHold has logged it; guarded by the shard's lock
}

// extras hold what most holds do without.
type extras struct {
	fences fences       // zero without fencing
	run    run          // zero unless granted by Redis' queue
	due    atomic.Int64 // of the next renewal, by Calls.Now; only for the observer
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

// newHold makes a hold of a lease that Redis granted to a call that began at start, and
// has the watchdog renew it. It is not yet the key's hold.
func (h *Engine) newHold(k *keyState, owner string, t Terms, start time.Time, a scripts.Acquired, r run) *hold {
	d := &hold{key: k, owner: owner, granted: h.calls.Now(), plain: t.plain()}
	if a.Fence != 0 || r.doubt || len(r.members) > 0 || h.observer != nil {
		d.extras = &extras{fences: fences{first: a.Fence, present: a.Fence, last: a.FenceEnd}, run: r}
	}
	if h.observer != nil {
		d.extras.due.Store(int64(h.calls.Since(start) + min(t.Lease, h.Lease)/3))
	}
	d.watchdog = h.watchdogs.of(h.calls.ServerOf(k.name))
	if t.MaxHold == 0 && !t.Fixed && h.MaxHold > 0 {
		t.MaxHold = h.MaxHold + time.Since(start) // start may be long before a grant
	}
	d.watchdog.Watch(d, watchdog.Terms{Anchor: start, Lease: t.Lease, Renew: !t.Fixed, MaxHold: t.MaxHold})
	return d
}

// renewal holds the slices of one renew. They are reused, as 100 000 leases make hundreds
// of renewals a second.
type renewal struct {
	keys, owners []string
	said         []scripts.Answer
}

var renewals = sync.Pool{New: func() any { return new(renewal) }}

// renew renews holds that are due, for the watchdog.
func (h *Engine) renew(ctx context.Context, holds []*hold, answers []watchdog.Answer) {
	r := renewals.Get().(*renewal)
	debug := h.Logger.Enabled(ctx, slog.LevelDebug)
	for _, d := range holds {
		if debug && h.calls.Now()-d.granted > h.Lease {
			h.logLongHold(d)
		}
		r.keys, r.owners = append(r.keys, d.key.name), append(r.owners, d.owner)
	}
	r.said = slices.Grow(r.said, len(holds))[:len(holds)]
	began := h.calls.Now()
	err := h.backend.Renew(calls.Hide(ctx), h.Lease, r.keys, r.owners, r.said)
	h.observer.answered(ctx, r.keys[0], err)
	if err != nil {
		err = calls.Known(h.calls.Ours(err))
		h.Logger.Warn("holdfast: renewal failed", "leases", len(holds), "error", err) // of one key, or of all
	}
	for i, a := range r.said {
		switch a {
		case scripts.Renewed:
			answers[i] = watchdog.Renewed
			h.observer.renewed(holds[i], began, nil)
		case scripts.NotOurs:
			answers[i] = watchdog.NotOurs
		case scripts.Unanswered:
			if err != nil && ctx.Err() != context.Canceled { // else the locker was closed
				h.observer.renewed(holds[i], began, err)
			}
		}
	}
	clear(r.keys)
	clear(r.owners)
	clear(r.said)
	r.keys, r.owners, r.said = r.keys[:0], r.owners[:0], r.said[:0]
	renewals.Put(r)
}

// logLongHold logs, once, that a key has been held for longer than a lease. A waiter of
// this locker may be the holder itself, without the context that is bound to the lease.
func (h *Engine) logLongHold(d *hold) {
	k := d.key
	k.Lock()
	logged, waiting := d.long, k.count()
	d.long = true
	k.Unlock()
	if !logged {
		h.Logger.Debug("holdfast: key held for longer than a lease",
			"key", errs.Quote(h.keyOf(k.name)), "held", h.calls.Now()-d.granted, "waiting", waiting)
	}
}

// holdEnded is the watchdog's call for a hold that is over without a release.
func (h *Engine) holdEnded(d *hold, why error) {
	h.lose(d, why)
	if outlived(why) {
		h.undo(d)
	}
}

// outlived says whether Redis may still have a hold that has ended for this reason. A
// renewal may have arrived of which no answer came. A fixed lease ends there by itself. On
// several nodes, Lost has ended the hold by then, and a release finds nothing.
func outlived(why error) bool {
	return why == watchdog.ErrMaxHold || why == watchdog.ErrDeadline && !seed.NoUndo
}

// lose ends a hold and its section by loss.
func (h *Engine) lose(d *hold, why error) {
	k := d.key
	k.Lock()
	mine := k.hold == d
	news := h.revoke(d, errs.Lost(why))
	if mine {
		h.waits.settle(k)
	}
	k.Unlock()
	if news {
		level := slog.LevelWarn
		if why == watchdog.ErrFixedLease { // as its caller asked
			level = slog.LevelInfo
		}
		h.Logger.Log(context.Background(), level, "holdfast: lease lost", "key", errs.Quote(h.keyOf(k.name)), "reason", why)
	}
}

// revoke is lose with the key locked, without settling it. It reports whether a section
// was alive until now.
func (h *Engine) revoke(d *hold, reason error) (news bool) {
	d.watchdog.Forget(d)
	d.over = true
	if d.section != nil {
		news = d.section.end(reason)
	}
	if k := d.key; k.hold == d {
		k.hold = nil
		h.waits.lost(k, d)
		h.backend.Lost(k.name, d.owner)
	}
	return news
}

// until is how long a hold without further renewals may last in Redis: a lease from the
// last one.
func (h *Engine) until(d *hold) time.Time {
	return calls.Later(time.Now().Add(h.Lease), d.Deadline()) // later with a longer fixed lease
}

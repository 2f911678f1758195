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

// Hold is one hold of a key in Redis. Several sections may run in it in turn (local
// hand-over); the field in Redis stays that of the first. hold, section and keyState are
// small, as services hold 100 000 of them.
type Hold struct {
	watchdog.Lease
	watchdog *watchdog.Watchdog[*Hold] // set by newHold
	Key      *Key                      // immutable
	Owner    string                    // the field in Redis; immutable
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
	state  any          // of the discipline; immutable
	due    atomic.Int64 // of the next renewal, by Calls.Now; only for the observer
}

// State is what the discipline keeps of the hold, or nil.
func (d *Hold) State() any {
	if d.extras == nil {
		return nil
	}
	return d.extras.state
}

// NewHold makes a hold of a lease that Redis granted to a call that began at start, and
// has the watchdog renew it. It is not yet a hold of the key. state is that of the discipline.
func (h *Engine) NewHold(k *Key, owner string, t Terms, start time.Time, a scripts.Acquired, state any) *Hold {
	d := &Hold{Key: k, Owner: owner, granted: h.Calls.Now(), plain: t.Plain()}
	if a.Fence != 0 || state != nil || h.observer != nil {
		d.extras = &extras{fences: fences{first: a.Fence, present: a.Fence, last: a.FenceEnd}, state: state}
	}
	if h.observer != nil {
		d.extras.due.Store(int64(h.Calls.Since(start) + min(t.Lease, h.Lease)/3))
	}
	d.watchdog = h.watchdogs.of(h.Calls.ServerOf(k.Name))
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
func (h *Engine) renew(ctx context.Context, holds []*Hold, answers []watchdog.Answer) {
	r := renewals.Get().(*renewal)
	debug := h.Logger.Enabled(ctx, slog.LevelDebug)
	for _, d := range holds {
		if debug && h.Calls.Now()-d.granted > h.Lease {
			h.logLongHold(d)
		}
		r.keys, r.owners = append(r.keys, d.Key.Name), append(r.owners, d.Owner)
	}
	r.said = slices.Grow(r.said, len(holds))[:len(holds)]
	began := h.Calls.Now()
	err := h.backend.Renew(calls.Hide(ctx), h.Lease, r.keys, r.owners, r.said)
	h.observer.answered(ctx, r.keys[0], err)
	if err != nil {
		err = calls.Known(h.Calls.Ours(err))
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
func (h *Engine) logLongHold(d *Hold) {
	k := d.Key
	k.Lock()
	logged, waiting := d.long, k.Count()
	d.long = true
	k.Unlock()
	if !logged {
		h.Logger.Debug("holdfast: key held for longer than a lease",
			"key", errs.Quote(h.KeyOf(k.Name)), "held", h.Calls.Now()-d.granted, "waiting", waiting)
	}
}

// holdEnded is the watchdog's call for a hold that is over without a release.
func (h *Engine) holdEnded(d *Hold, why error) {
	h.lose(d, why)
	if outlived(why) {
		h.Undo(d)
	}
}

// outlived says whether Redis may still have a hold that has ended for this reason. A
// renewal may have arrived of which no answer came. A fixed lease ends there by itself. On
// several nodes, Lost has ended the hold by then, and a release finds nothing.
func outlived(why error) bool {
	return why == watchdog.ErrMaxHold || why == watchdog.ErrDeadline && !seed.NoUndo
}

// lose ends a hold and its section by loss.
func (h *Engine) lose(d *Hold, why error) {
	k := d.Key
	k.Lock()
	mine := k.has(d)
	news := h.revoke(d, errs.Lost(why))
	if mine {
		h.waits.Settle(k)
	}
	k.Unlock()
	if news {
		level := slog.LevelWarn
		if why == watchdog.ErrFixedLease { // as its caller asked
			level = slog.LevelInfo
		}
		h.Logger.Log(context.Background(), level, "holdfast: lease lost", "key", errs.Quote(h.KeyOf(k.Name)), "reason", why)
	}
}

// revoke is lose with the key locked, without settling it. It reports whether a section
// was alive until now.
func (h *Engine) revoke(d *Hold, reason error) (news bool) {
	d.watchdog.Forget(d)
	d.over = true
	news = d.end(reason)
	if k := d.Key; k.forget(d) {
		h.waits.Lost(k, d)
		h.backend.Lost(k.Name, d.Owner)
	}
	return news
}

// Terms are what a caller asks of an outermost hold.
type Terms struct {
	Lease   time.Duration // of the hold
	Fixed   bool          // never renewed
	MaxHold time.Duration // cap on a renewed hold; 0: none
}

// Plain says whether the terms are the default: a renewed hold without a cap, with the
// locker's lease. Only such holds are handed over locally.
func (t Terms) Plain() bool { return !t.Fixed && t.MaxHold == 0 }

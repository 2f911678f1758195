package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Hold is one hold of a key in Redis. Several sections may run in it: in turn (local handover),
// or at the same time (readers). They share its owner, and so its field in Redis. Hold, section
// and Key are small, as services hold 100 000 of them.
type Hold struct {
	watchdog.Lease
	watchdog  *watchdog.Watchdog[*Hold] // set by NewHold
	Key       *Key                      // immutable
	prev      *Hold                     // of the holds of the key, see Key.oldest; guarded by the stripe's mutex
	next      *Hold                     // nil: is not among them
	Owner     string                    // the field in Redis; immutable
	granted   time.Duration             // when, by Calls.Now; immutable
	extras    *extras                   // noExtras if there are none; immutable
	section   *section                  // the newest; guarded by the stripe's mutex
	first     section                   // in place, which saves an allocation
	isDefault bool                      // see Terms.Default; immutable
	late      bool                      // its call took over a second, by which Redis may have it for longer than we trust it; immutable
	pinned    bool                      // never handed over: a nested call may still arrive, or a reader is beside it; guarded by the stripe's mutex
	lost      bool                      // guarded by the stripe's mutex
	long      bool                      // logLongHold has logged it; guarded by the stripe's mutex
}

// extras hold what most holds do without.
type extras struct {
	label       *string               // of the call that got the hold; nil: that of the locker; immutable
	fences      fences                // zero without fencing
	sections    map[*section]struct{} // those that live, with SharedHolds; otherwise nil; guarded by the stripe's mutex
	tenureBegan time.Duration         // of the current one, by Calls.Now, with SharedHolds; guarded by the stripe's mutex
	state       any                   // of the discipline; immutable
	due         atomic.Int64          // of the next renewal, by Calls.Now; only for the observer
}

// noExtras is never changed.
var noExtras extras

// State is what the discipline keeps for the hold, or nil.
func (h *Hold) State() any { return h.extras.state }

// NewHold makes a hold of a lease that Redis granted to a call that began at start, and makes
// the watchdog renew it. It is not yet a hold of the key. state is that of the discipline.
func (e *Engine) NewHold(k *Key, owner string, t Terms, start time.Time, a wire.AcquireReply, state any) *Hold {
	h := &Hold{Key: k, Owner: owner, granted: e.Calls.Now(), extras: &noExtras, isDefault: t.Default()}
	h.late = h.granted-e.Calls.At(start) > time.Second
	if e.Holds == SharedHolds || a.Fence != 0 || state != nil || e.observer != nil || t.Label != nil {
		h.extras = &extras{label: t.Label, fences: fences{first: a.Fence, current: a.Fence, last: a.FenceEnd}, state: state}
	}
	if e.Holds == SharedHolds {
		h.extras.sections, h.extras.tenureBegan = make(map[*section]struct{}, 1), h.granted
	}
	if e.observer != nil {
		h.extras.due.Store(int64(e.Calls.At(start) + min(t.Lease, e.Lease)/3))
	}
	h.watchdog = e.watchdogs.of(e.Calls.ServerOf(k.Name))
	if t.MaxHold == 0 && e.MaxHold > 0 {
		t.MaxHold = e.MaxHold + time.Since(start) // start may be long before a grant
	}
	h.watchdog.Watch(h, watchdog.Terms{Anchor: start, Lease: t.Lease, Renew: t.MaxHold != Fixed, MaxHold: max(t.MaxHold, 0)})
	return h
}

// buffers are the slices of one renewal. They are reused, as 100 000 leases make hundreds of
// renewals a second.
type buffers struct {
	keys, owners []string
}

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

// renew renews holds that are due, for the watchdog.
func (e *Engine) renew(ctx context.Context, holds []*Hold, answers []watchdog.Answer) {
	b := bufferPool.Get().(*buffers)
	debug := e.Logger.Enabled(ctx, slog.LevelDebug)
	for _, h := range holds {
		if debug && e.Calls.Now()-h.granted > e.Lease {
			e.logLongHold(h)
		}
		b.keys, b.owners = append(b.keys, h.Key.Name), append(b.owners, h.Owner)
	}
	began := e.Calls.Now()
	err := e.backend.Renew(calls.HideDeadline(ctx), e.Lease, b.keys, b.owners, answers)
	e.ObserveCall(ctx, b.keys[0], err)
	if ctx.Err() == context.Canceled { // the locker was closed
		err = nil
	}
	if err != nil {
		err = calls.WithOutcome(e.Calls.Public(err))
	}
	failed := 0
	for i, a := range answers {
		if a == watchdog.Renewed {
			e.observer.renewed(holds[i], began, nil)
		} else if a == watchdog.Unanswered && err != nil {
			failed++
			e.observer.renewed(holds[i], began, err)
		}
	}
	if failed > 0 {
		e.Logger.Warn("holdfast: renewal failed", "leases", failed, "error", err)
	}
	clear(b.keys)
	clear(b.owners)
	b.keys, b.owners = b.keys[:0], b.owners[:0]
	bufferPool.Put(b)
}

// logLongHold logs, once, that a key has been held for longer than a lease. A waiter of
// this locker may be the holder itself, without the context that is bound to the lease.
func (e *Engine) logLongHold(h *Hold) {
	k := h.Key
	k.Lock()
	logged, waiting := h.long, k.Waiting()
	h.long = true
	k.Unlock()
	if !logged {
		e.Logger.Debug("holdfast: key held for longer than a lease",
			"key", errs.Quote(e.KeyOf(k.Name)), "held", e.Calls.Now()-h.granted, "waiting", waiting)
	}
}

// holdEnded sees to a hold that has ended without a release. The watchdog calls it, or an Unlock before that.
func (e *Engine) holdEnded(h *Hold, why error) {
	e.lose(h, why)
	if h.outlived(why) {
		e.Undo(h.Orphan())
	}
}

// outlived reports whether Redis may still have a hold that has ended for this reason. A renewal
// without an answer may have arrived. A fixed lease ends there by itself, unless its acquire
// arrived late. On several nodes, Abandoned has ended the hold by then, and a release finds
// nothing.
func (h *Hold) outlived(why error) bool {
	return why == watchdog.ErrMaxHold || why == watchdog.ErrDeadline || why == watchdog.ErrFixedLease && h.late
}

// lose ends a hold and its sections by loss.
func (e *Engine) lose(h *Hold, why error) {
	k := h.Key
	k.Lock()
	defer k.Unlock()
	mine := k.has(h)
	e.revoke(h, why)
	if mine {
		e.discipline.Settle(k)
	}
}

// revoke is lose with the key's mutex held, and does not settle the key.
func (e *Engine) revoke(h *Hold, why error) {
	k := h.Key
	h.watchdog.Forget(h)
	h.lost = true
	if h.cancel(errs.Lost(why)) {
		k.notices = append(k.notices, notice{why: why, hold: h})
	}
	if k.remove(h) {
		e.discipline.HoldLost(k, h)
		e.backend.Abandoned(h.Owner)
	}
}

func (e *Engine) logLoss(h *Hold, why error) {
	level := slog.LevelWarn
	if why == watchdog.ErrFixedLease { // as its caller asked
		level = slog.LevelInfo
	}
	e.Logger.Log(context.Background(), level, "holdfast: lease lost", "key", errs.Quote(e.KeyOf(h.Key.Name)), "reason", why)
}

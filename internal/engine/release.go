package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Unlock ends the entry. The last entry of a section ends the section: it hands the hold
// over, or releases the key. Unlock works even when ctx is over: ctx only calls.Bounds the wait
// for a release whose first attempt failed.
func (e *entry) Unlock(ctx context.Context) error {
	return errs.Of("unlock", e.Key(), e.unlock(ctx))
}

func (e *entry) unlock(ctx context.Context) error {
	c, k := e.section, e.key()
	d, h := c.hold, k.engine
	k.Lock()
	over := c.over
	if e.unlocked {
		over = holdfast.ErrReleased
	}
	e.unlocked = true
	if over != nil {
		k.Unlock()
		if seed.NilAfterLoss && errors.Is(over, holdfast.ErrLost) {
			return nil
		}
		return over
	}
	if !d.Alive() {
		why := d.Over()
		if outlived(why) { // the watchdog, which would undo it, is late
			h.Undo(d)
		}
		k.Unlock()
		h.lose(d, why)
		return errs.Lost(why)
	}
	if c.entries > 1 {
		held := h.observer.held(e)
		e.endNested()
		k.Unlock()
		defer h.Calls.End()
		err := h.countOut(ctx, c)
		h.observer.ended(e, held, err)
		return err
	}
	held := h.observer.held(e)
	c.end(holdfast.ErrReleased)
	d.tainted = d.tainted || c.nesting.busy()
	w, next := h.handOver(k, d)
	if w == nil {
		d.watchdog.Forget(d)
		k.forget(d)
		k.ending = d
		h.waits.Departs(k)
		k.calls++
		h.Calls.Begin() // Close has not passed here: it would have ended the section
	} else {
		h.observer.ended(e, held, nil)
		h.observer.acquired(&next.first, holdfast.ByHandOver, w.Since)
	}
	k.Unlock()
	if w != nil {
		w.ready <- result{lease: &next.first.lease}
		return nil
	}
	defer h.Calls.End()
	err := h.release(ctx, k, d)
	if err != nil && !errs.LeaseOver(err) { // Do does not return it
		h.Logger.Warn("holdfast: release failed; the key frees itself within its lease", "key", errs.Quote(e.Key()), "error", err)
	}
	h.observer.ended(e, held, err)
	return err
}

// release frees the key in Redis and lets its waiters go on. If the first attempt fails, or is
// refused, more follow in the background for a lease; after that Redis has freed the key itself.
func (h *Engine) release(ctx context.Context, k *Key, d *Hold) error {
	r := releasing{engine: h, hold: d, lastFence: d.fences().used()}
	err := r.attempt(h.Calls.Context())
	k.Lock()
	outcome := scripts.OutcomeOf(err)
	done, final := outcome == scripts.Done, outcome == scripts.Refused && scripts.Permanent(err)
	if done || final {
		k.endedRelease(d)
	}
	h.waits.Released(k, r.said)
	k.End()
	k.Unlock()
	switch {
	case done:
		return r.result()
	case final:
		h.backend.Lost(k.Name, d.Owner)
		return err
	}
	finished := make(chan error, 1)
	h.Calls.Background(func() {
		err := h.Calls.Persist(h.Lease, h.until(d), r.attempt)
		k.Lock()
		k.endedRelease(d)
		if err != nil {
			h.waits.Lost(k, d)
		}
		h.waits.Settle(k)
		k.Unlock()
		if err != nil {
			h.backend.Lost(k.Name, d.Owner)
			h.MayRemain(k.Name, err)
		}
		finished <- err
	})
	if outcome == scripts.Refused { // may last: the caller does not wait for it
		return err
	}
	select {
	case err = <-finished:
		if err == nil {
			return r.result()
		}
		return errs.Failed(holdfast.ErrUnknown, err)
	case <-ctx.Done():
		return errs.Ended(ctx, errs.Failed(holdfast.ErrUnknown, err))
	}
}

// releasing is one release, however many attempts it takes.
type releasing struct {
	engine    *Engine
	hold      *Hold
	lastFence int64
	said      scripts.Released // in the last answer
	doubt     bool             // an attempt without an answer may have released
}

func (r *releasing) attempt(ctx context.Context) (err error) {
	h := r.engine
	if h.Calls.Answering(r.hold.Key.Name) { // as detached, but without its closure
		r.said, err = h.waits.Release(ctx, r.hold, r.lastFence)
	} else {
		r.said, err = calls.Detached(ctx, h.Calls, r.hold.Key.Name, func(ctx context.Context) (scripts.Released, error) {
			return h.waits.Release(ctx, r.hold, r.lastFence)
		})
	}
	h.observer.answered(ctx, r.hold.Key.Name, err)
	err = h.Calls.Noted(r.hold.Key.Name, err)
	r.doubt = r.doubt || scripts.OutcomeOf(err).Perhaps()
	return err
}

// result judges an answered release. A hold that Redis did not find was lost, unless an
// earlier attempt may have released it, or the key has run out since Unlock.
func (r *releasing) result() error {
	if r.said.Ours || r.doubt && !seed.RepeatIsLoss || !time.Now().Before(r.hold.Deadline()) {
		return nil
	}
	return errs.Lost(watchdog.ErrNotOurs)
}

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
			h.undo(d)
		}
		k.Unlock()
		h.lose(d, why)
		return errs.Lost(why)
	}
	if c.entries > 1 {
		held := h.observer.held(e)
		e.endNested()
		k.Unlock()
		defer h.calls.End()
		err := h.countOut(ctx, c)
		h.observer.ended(e, held, err)
		return err
	}
	held := h.observer.held(e)
	c.end(holdfast.ErrReleased)
	d.tainted = d.tainted || c.nesting.busy()
	w, lease := h.handOver(k, d)
	if w == nil {
		d.watchdog.Forget(d)
		k.hold, k.ending = nil, d
		h.waits.departs(k)
		k.calls++
		h.calls.Begin() // Close has not passed here: it would have ended the section
	} else {
		h.observer.ended(e, held, nil)
		h.observer.acquired(&d.section.first, holdfast.ByHandOver, w.since)
	}
	k.Unlock()
	if w != nil {
		w.ready <- result{lease: lease}
		return nil
	}
	defer h.calls.End()
	err := h.release(ctx, k, d)
	if err != nil && !errs.LeaseOver(err) { // Do does not return it
		h.Logger.Warn("holdfast: release failed; the key frees itself within its lease", "key", errs.Quote(e.Key()), "error", err)
	}
	h.observer.ended(e, held, err)
	return err
}

// release frees the key in Redis and lets its waiters go on. If the first attempt fails, or is
// refused, more follow in the background for a lease; after that Redis has freed the key itself.
func (h *Engine) release(ctx context.Context, k *keyState, d *hold) error {
	r := releasing{engine: h, hold: d, lastFence: d.fences().used()}
	err := r.attempt(h.calls.Context())
	k.Lock()
	k.calls--
	outcome := scripts.OutcomeOf(err)
	done, final := outcome == scripts.Done, outcome == scripts.Refused && scripts.Permanent(err)
	if done || final {
		k.endedRelease(d)
	}
	h.waits.released(k, r.said)
	h.waits.settle(k)
	k.Unlock()
	switch {
	case done:
		return r.result()
	case final:
		h.backend.Lost(k.name, d.owner)
		return err
	}
	finished := make(chan error, 1)
	h.calls.Background(func() {
		err := h.persist(h.until(d), r.attempt)
		k.Lock()
		k.endedRelease(d)
		if err != nil {
			h.waits.lost(k, d)
		}
		h.waits.settle(k)
		k.Unlock()
		if err != nil {
			h.backend.Lost(k.name, d.owner)
			h.mayRemain(k.name, err)
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
	hold      *hold
	lastFence int64
	said      scripts.Released // in the last answer
	doubt     bool             // an attempt without an answer may have released
}

func (r *releasing) attempt(ctx context.Context) (err error) {
	h := r.engine
	if h.calls.Answering(r.hold.key.name) { // as detached, but without its closure
		r.said, err = h.waits.release(ctx, r.hold, r.lastFence)
	} else {
		r.said, err = calls.Detached(ctx, h.calls, r.hold.key.name, func(ctx context.Context) (scripts.Released, error) {
			return h.waits.release(ctx, r.hold, r.lastFence)
		})
	}
	h.observer.answered(ctx, r.hold.key.name, err)
	err = h.calls.Noted(r.hold.key.name, err)
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

// persist repeats a call until it succeeds, can no longer do so, or the time is over. It
// returns the last error. What Redis refuses, it may allow later.
func (h *Engine) persist(until time.Time, call func(context.Context) error) error {
	var retry calls.Backoff
	for {
		err := call(h.calls.Context())
		if err == nil || scripts.Permanent(err) {
			return err
		}
		pause := retry.Next(h.Lease)
		if time.Until(until) < pause || !calls.Sleep(pause, h.calls.Base.Done()) {
			return err
		}
	}
}

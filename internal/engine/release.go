package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Unlock ends the entry. The last entry of a section ends the section: it hands the hold
// over, or releases the key. Unlock works even when ctx has ended: ctx only bounds the
// wait for a release whose first attempt failed.
func (en *entry) Unlock(ctx context.Context) error {
	return errs.Of("unlock", en.Key(), en.unlock(ctx))
}

func (en *entry) unlock(ctx context.Context) error {
	s, k := en.section, en.key()
	h, e := s.hold, k.engine
	k.Lock()
	cause := s.cause
	if en.unlocked {
		cause = holdfast.ErrReleased
	}
	en.unlocked = true
	if cause != nil {
		k.Unlock()
		return cause
	}
	// Close has not passed here: it would have ended the section.
	now := e.Calls.Now()
	if !h.AliveAt(e.Calls.Time(now)) { // the watchdog, which would end it, is late
		why := h.Reason()
		e.Calls.Begin()
		k.Unlock()
		defer e.Calls.End()
		e.holdEnded(h, why)
		return errs.Lost(why)
	}
	if s.entries > 1 {
		return en.unlockNested(ctx)
	}
	return en.unlockLast(ctx, now)
}

// unlockLast ends the section with its last entry, at a time of Calls.Now. The key's mutex is held; unlockLast unlocks it.
func (en *entry) unlockLast(ctx context.Context, now time.Duration) error {
	s, k := en.section, en.key()
	h, e := s.hold, k.engine
	held := e.observer.heldFor(en)
	s.end(holdfast.ErrReleased)
	h.pinned = h.pinned || s.nesting.busy()
	if h.dropSection(s) { // the last of the others releases it
		e.observer.ended(en, held, nil)
		k.Unlock()
		return nil
	}
	if w, next := e.handover(k, h, now); w != nil {
		e.observer.ended(en, held, nil)
		e.observer.acquired(&next.first, holdfast.ByHandover, w.Since)
		k.Unlock()
		w.ready <- result{lease: &next.first.lease}
		return nil
	}
	h.watchdog.Forget(h)
	k.remove(h)
	k.releasing = h
	e.discipline.BeforeRelease(k)
	k.begin()
	k.Unlock()
	defer e.Calls.End()
	err := e.release(ctx, k, h)
	if err != nil && !errs.LeaseOver(err) { // Do does not return it
		e.Logger.Warn("holdfast: release failed; the key frees itself within its lease", "key", errs.Quote(en.Key()), "error", err)
	}
	e.observer.ended(en, held, err)
	return err
}

// release frees the key in Redis and lets its waiters go on. If the first attempt fails, or is
// refused, more follow in the background for a lease; after that Redis has freed the key itself. They do
// not go through Undo, where a release for which a caller waits could stand behind calls for other keys.
func (e *Engine) release(ctx context.Context, k *Key, h *Hold) error {
	r := releasing{hold: h, lastFence: h.fences().used()}
	err := r.attempt(e.Calls.Context())
	k.Lock()
	outcome := wire.OutcomeOf(err)
	over := err == nil || outcome == wire.Refused && wire.Permanent(err)
	if over {
		k.released(h, err)
	}
	e.discipline.AfterRelease(k, r.reply)
	k.EndCall()
	k.Unlock()
	switch {
	case err == nil:
		return r.verdict()
	case over:
		return err
	}
	finished := make(chan error, 1)
	e.Calls.Background(func() {
		err := e.Calls.RetryUntil(e.Lease, e.until(h), r.attempt)
		k.Lock()
		k.released(h, err)
		e.discipline.Settle(k)
		k.Unlock()
		if err != nil {
			e.MayRemain(k.Name, err)
		}
		finished <- err
	})
	if outcome == wire.Refused { // may last: the caller does not wait for it
		return err
	}
	select {
	case err = <-finished:
		if err == nil {
			return r.verdict()
		}
		return errs.With(holdfast.ErrUnknown, err)
	case <-ctx.Done():
		return errs.WithContext(ctx, errs.With(holdfast.ErrUnknown, err))
	}
}

// releasing is one release, however many attempts it takes.
type releasing struct {
	hold      *Hold
	lastFence int64
	reply     wire.ReleaseReply // in the last answer
	doubt     bool              // an attempt without an answer may have released
}

func (r *releasing) attempt(ctx context.Context) (err error) {
	e, name := r.hold.Key.engine, r.hold.Key.Name
	if e.Calls.Answering(name) { // without a closure, which each Unlock would allocate
		r.reply, err = r.send(ctx)
	} else {
		r.reply, err = calls.Detached(ctx, e.Calls, name, r.send)
	}
	err = e.NoteCall(ctx, name, err)
	r.doubt = r.doubt || wire.OutcomeOf(err).MayHaveRun()
	return err
}

func (r *releasing) send(ctx context.Context) (wire.ReleaseReply, error) {
	return r.hold.Key.engine.discipline.Release(ctx, r.hold, r.lastFence)
}

// verdict says what an answered release means. A hold that Redis did not find was lost. There are two
// exceptions: an earlier attempt may have released it, or the key has run out since Unlock.
func (r *releasing) verdict() error {
	if r.reply.Ours || r.doubt || !time.Now().Before(r.hold.Deadline()) {
		return nil
	}
	return errs.Lost(watchdog.ErrNotOurs)
}

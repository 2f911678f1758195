package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Redis counts nested entries, so that every process sees true hold counts. A call names
// the count that it sets, so repeating it is harmless. A section makes its calls one at a
// time. The last Unlock waits for none of them, as it deletes the field with all its entries.

// nesting is the state of a section with nested entries. Guarded by the stripe's mutex.
type nesting struct {
	serial  chan struct{}       // one slot, full while a call is under way; immutable
	entries map[*entry]struct{} // those that live, without the first
}

// nest returns the section's nesting, made if need be, with the key's mutex held.
func (s *section) nest() *nesting {
	if s.nesting == nil {
		s.nesting = &nesting{serial: make(chan struct{}, 1), entries: make(map[*entry]struct{}, 1)}
	}
	return s.nesting
}

// busy reports whether a nested call is under way.
func (n *nesting) busy() bool { return n != nil && len(n.serial) > 0 }

// nested makes a Lock whose ctx is bound to a lease of the key, of this engine or of the other half
// of a read/write lock. If it returns neither a lease nor an error, there is no such
// lease, and the Lock goes on as any other.
func (e *Engine) nested(ctx context.Context, r *request) (*holdfast.Lease, error) {
	en := e.boundTo(ctx, r.name)
	if lease, err := e.lockPaired(ctx, r, en); lease != nil || err != nil || en == nil {
		return lease, err
	}
	return e.reenter(ctx, r, en)
}

// reenter adds an entry to the section of outer.
func (e *Engine) reenter(ctx context.Context, r *request, outer *entry) (*holdfast.Lease, error) {
	if !r.Default() {
		return nil, errs.ErrNested
	}
	s, k, began := outer.section, outer.key(), e.Calls.Now()
	k.Lock()
	if err := outer.err(); err != nil {
		k.Unlock()
		return nil, err
	}
	serial := s.nest().serial
	e.Calls.Begin() // not closed: Close would have ended the entry
	k.Unlock()
	defer e.Calls.End()

	if err := e.awaitEarlier(ctx, r, serial); err != nil {
		return nil, err
	}
	doubt, err := e.countIn(ctx, r, outer)
	if doubt {
		e.setEntriesLater(s, true)
		return nil, err
	}
	defer func() { <-serial }()
	if err != nil {
		return nil, err
	}
	k.Lock()
	defer k.Unlock()
	if err := outer.err(); err != nil {
		return nil, err
	}
	s.entries++
	en := &entry{section: s}
	en.lease = holdfast.NewLease(en)
	s.nesting.entries[en] = struct{}{}
	e.observer.acquired(en, holdfast.ByReentry, began)
	return &en.lease, nil
}

// awaitEarlier waits for the earlier nested calls. They take long only while Redis does not
// answer; then awaitEarlier waits as long as an outermost Lock or TryLock does.
func (e *Engine) awaitEarlier(ctx context.Context, r *request, serial chan<- struct{}) error {
	limit := e.Calls.Timeout
	if r.wait != 0 {
		limit = max(limit, *e.MaxOutage)
	}
	for {
		select {
		case serial <- struct{}{}:
			return nil
		case <-ctx.Done():
			return errs.WithWait(ctx, holdfast.ErrNotAcquired)
		case <-time.After(limit):
			if !e.Calls.AnsweredWithin(r.name, limit) {
				return errs.With(holdfast.ErrUnavailable, e.Calls.Public(calls.ErrNoAnswer))
			}
		}
	}
}

// countIn sets the count in Redis to one more than there are entries. doubt reports that a failed
// call may have set it.
func (e *Engine) countIn(ctx context.Context, r *request, outer *entry) (doubt bool, err error) {
	s := outer.section
	err = e.RideOut(ctx, r.wait != 0, func(ctx context.Context) error {
		if cause := outer.Err(); cause != nil {
			return cause
		}
		n, _ := s.count()
		err := wire.AsLapsed(e.setEntries(ctx, s, n+1, false))
		switch outcome := wire.OutcomeOf(err); {
		case outcome == wire.Done:
			doubt = false
		case outcome.MayHaveRun():
			doubt = true
			s.pin()
		}
		return err
	})
	return doubt, err
}

// setEntries makes one call to set the count, and a label of the hold's own. A hold that is no longer
// ours ends. A count of fewer entries need not be on replicas.
func (e *Engine) setEntries(ctx context.Context, s *section, n int, fewer bool) error {
	h := s.hold
	ours, err := Call(ctx, e, h.Key.Name, func(ctx context.Context) (bool, error) {
		set, err := e.backend.SetEntries(ctx, h.Key.Name, h.Owner, wire.Entries{Count: n, Label: h.extras.label})
		if set && fewer {
			err = nil
		}
		return set, err
	})
	if err == nil && !ours {
		e.lose(h, watchdog.ErrNotOurs)
	}
	return err
}

// count returns the count that Redis should have, and why the section has ended, or nil.
func (s *section) count() (int, error) {
	k := s.hold.Key
	k.Lock()
	defer k.Unlock()
	return int(s.entries), s.cause
}

// unlockNested ends an entry that is not the last. The key's mutex is held; unlockNested unlocks it.
func (en *entry) unlockNested(ctx context.Context) error {
	s, k := en.section, en.key()
	e := k.engine
	held := e.observer.heldFor(en)
	s.entries--
	en.notify(holdfast.ErrReleased)
	en.endedEarly = true
	delete(s.nesting.entries, en)
	e.Calls.Begin()
	k.Unlock()
	defer e.Calls.End()
	err := e.countOut(ctx, s)
	e.observer.ended(en, held, err)
	return err
}

// countOut counts an ended entry out in Redis, after the earlier nested calls. When ctx ends, so
// does all of this, but not before the time of one call has passed.
func (e *Engine) countOut(ctx context.Context, s *section) error {
	serial, expiry := s.nesting.serial, time.NewTimer(0)
	defer expiry.Stop()
	bounded := e.Calls.Context()
	patience, gone := bounded.Done(), (<-chan struct{})(nil)
	for waiting := true; waiting; {
		expiry.Reset(time.Until(s.hold.Deadline()))
		select {
		case serial <- struct{}{}:
			waiting = false
		case <-expiry.C:
			if !s.hold.Alive() {
				if _, end := s.count(); end != nil && !errors.Is(end, holdfast.ErrLost) { // in time, by the last Unlock or Close
					return nil
				}
				return errs.Lost(s.hold.Reason())
			}
		case <-patience:
			patience, gone = nil, ctx.Done()
		case <-gone:
			e.setEntriesLater(s, false)
			return errs.WithContext(ctx, errs.With(holdfast.ErrUnknown, e.Calls.Public(calls.ErrNoAnswer)))
		}
	}
	own, done := e.Calls.ContextAfter(bounded, ctx)
	defer done()
	n, end := s.count()
	if end == nil { // otherwise the field is gone, or counts for the next section
		err := e.setEntries(own, s, n, true)
		switch wire.OutcomeOf(err) {
		case wire.Done:
		case wire.Refused:
			<-serial
			return err
		default:
			e.setEntriesLater(s, true)
			if err = errs.With(holdfast.ErrUnknown, err); ctx.Err() != nil {
				err = errs.WithContext(ctx, err)
			}
			return err
		}
	}
	<-serial
	if _, cause := s.count(); errors.Is(cause, holdfast.ErrLost) {
		return cause
	}
	return nil
}

// pin keeps the hold from being handed over: a late nested call, or a reader beside this section, would
// count for the next one.
func (s *section) pin() {
	k := s.hold.Key
	k.Lock()
	s.hold.pinned = true
	k.Unlock()
}

// setEntriesLater corrects the count in Redis in the background, after the earlier nested
// calls. haveSlot: they have ended, and the caller has the slot, which setEntriesLater gives back.
func (e *Engine) setEntriesLater(s *section, haveSlot bool) {
	s.pin()
	e.Calls.Background(func() {
		if !haveSlot {
			s.nesting.serial <- struct{}{}
		}
		defer func() { <-s.nesting.serial }()
		_ = e.Calls.RetryUntil(e.Lease, s.hold.Deadline(), func(ctx context.Context) error {
			n, cause := s.count()
			if cause != nil {
				return nil // the field is gone, or will be
			}
			if err := e.setEntries(ctx, s, n, true); wire.OutcomeOf(err) != wire.Refused { // see countOut
				return err
			}
			return nil
		})
	})
}

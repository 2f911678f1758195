package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Redis counts nested entries, so that every process sees true hold counts. A call names
// the count that it sets, so repeating it is harmless. A section makes its calls one at a
// time. The last Unlock waits for none of them, as it deletes the field whatever its count.

// nesting is the state of a section with nested entries. Guarded by the shard's lock.
type nesting struct {
	serial  chan struct{}       // one slot, full while a call is under way; immutable
	entries map[*entry]struct{} // those that live, without the first
}

// nest returns the section's nesting, made if need be, with the key locked.
func (c *section) nest() *nesting {
	if c.nesting == nil {
		c.nesting = &nesting{serial: make(chan struct{}, 1), entries: make(map[*entry]struct{}, 1)}
	}
	return c.nesting
}

// busy says whether a nested call is under way.
func (n *nesting) busy() bool { return n != nil && len(n.serial) > 0 }

// reenter adds an entry to the section of outer.
func (h *Engine) reenter(ctx context.Context, outer *entry, t Terms, wait bool) (*holdfast.Lease, error) {
	if !t.Plain() {
		return nil, errs.ErrNested
	}
	c, k, began := outer.section, outer.key(), time.Now()
	k.Lock()
	if err := outer.err(); err != nil {
		k.Unlock()
		return nil, err
	}
	serial := c.nest().serial
	h.Calls.Begin() // not closed: Close would have ended the entry
	k.Unlock()
	defer h.Calls.End()

	if err := h.awaitTurn(ctx, k.Name, serial, wait); err != nil {
		return nil, err
	}
	doubt, err := h.countIn(ctx, outer, wait)
	if doubt {
		h.recountLater(c, true)
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
	c.entries++
	e := &entry{section: c}
	e.lease = holdfast.NewLease(e)
	c.nesting.entries[e] = struct{}{}
	h.observer.acquired(e, holdfast.ByReentry, began)
	return &e.lease, nil
}

// awaitTurn waits for the earlier nested calls. They take long only while Redis does not
// answer; then awaitTurn waits as long as an outermost Lock or TryLock does.
func (h *Engine) awaitTurn(ctx context.Context, name string, serial chan<- struct{}, wait bool) error {
	limit := h.Calls.Timeout
	if wait {
		limit = max(limit, *h.MaxOutage)
	}
	over := time.NewTicker(limit)
	defer over.Stop()
	for {
		select {
		case serial <- struct{}{}:
			return nil
		case <-ctx.Done():
			return errs.EndedBy(ctx, holdfast.ErrNotAcquired)
		case <-over.C:
			if !h.Calls.AnsweredWithin(name, limit) {
				return errs.Failed(holdfast.ErrUnavailable, h.Calls.Ours(calls.ErrNoAnswer))
			}
		}
	}
}

// countIn sets the count in Redis to one more than there are entries. doubt says that a
// failed call may have set it.
func (h *Engine) countIn(ctx context.Context, outer *entry, wait bool) (doubt bool, err error) {
	c := outer.section
	began, retry := time.Now(), calls.Backoff{}
	for {
		if over := outer.Err(); over != nil {
			return doubt, over
		}
		n, _ := c.count()
		bounded, done := h.Calls.ContextFor(ctx)
		_, err := h.recount(bounded, c, n+1)
		err = scripts.Lapse(err)
		done()
		outcome := scripts.OutcomeOf(err)
		switch outcome {
		case scripts.Done:
			return false, nil
		case scripts.Unknown, scripts.Doubtful:
			doubt = true
			c.taint()
		}
		if ctx.Err() == nil {
			if outcome.Final() || !wait || time.Since(began) >= *h.MaxOutage {
				return doubt, calls.Known(err)
			}
			calls.Sleep(retry.Next(h.Lease), ctx.Done())
		}
		if ctx.Err() != nil {
			return doubt, errs.EndedBy(ctx, calls.Known(err))
		}
	}
}

// recount makes one call to set the count. A hold that is no longer ours ends. set says that
// Redis has the count: with an error, only replicas are not known to have it.
func (h *Engine) recount(ctx context.Context, c *section, n int) (set bool, err error) {
	d := c.hold
	set, err = calls.Redis(ctx, h.Calls, d.Key.Name, func(ctx context.Context) (bool, error) {
		return h.backend.Recount(ctx, d.Key.Name, d.Owner, n)
	})
	if err == nil && !set {
		h.lose(d, watchdog.ErrNotOurs)
	}
	return set, err
}

// recountDown is recount for a count that need not be on replicas, as it is of fewer entries.
func (h *Engine) recountDown(ctx context.Context, c *section, n int) error {
	set, err := h.recount(ctx, c, n)
	if set {
		return nil
	}
	return err
}

// count returns the count that Redis should have, and why the section has ended, or nil.
func (c *section) count() (int, error) {
	k := c.hold.Key
	k.Lock()
	defer k.Unlock()
	return int(c.entries), c.over
}

// endNested ends an entry that is not the last, with the key locked. countOut has to
// follow.
func (e *entry) endNested() {
	c := e.section
	c.entries--
	e.end(holdfast.ErrReleased)
	e.over = true
	delete(c.nest().entries, e)
	e.key().engine.Calls.Begin()
}

// countOut counts an ended entry out in Redis. A ctx that is over ends the wait for the
// earlier nested calls, though not before the time of one call has passed.
func (h *Engine) countOut(ctx context.Context, c *section) error {
	serial, over := c.nesting.serial, time.NewTimer(0)
	defer over.Stop()
	patience, gone := h.Calls.Context().Done(), (<-chan struct{})(nil)
	for waiting := true; waiting; {
		over.Reset(time.Until(c.hold.Deadline()))
		select {
		case serial <- struct{}{}:
			waiting = false
		case <-over.C:
			if !c.hold.Alive() {
				return errs.Lost(c.hold.Over())
			}
		case <-patience:
			patience, gone = nil, ctx.Done()
		case <-gone:
			h.recountLater(c, false)
			return errs.Ended(ctx, errs.Failed(holdfast.ErrUnknown, h.Calls.Ours(calls.ErrNoAnswer)))
		}
	}
	n, end := c.count()
	if end == nil { // else the field is gone, or counts for the next section
		err := h.recountDown(h.Calls.Context(), c, n)
		switch scripts.OutcomeOf(err) {
		case scripts.Done:
		case scripts.Refused:
			<-serial
			return err
		default:
			h.recountLater(c, true)
			return errs.Failed(holdfast.ErrUnknown, err)
		}
	}
	<-serial
	if _, over := c.count(); errors.Is(over, holdfast.ErrLost) {
		return over
	}
	return nil
}

// taint keeps the hold from being handed over: a late nested call would count for the next
// section.
func (c *section) taint() {
	k := c.hold.Key
	k.Lock()
	c.hold.tainted = true
	k.Unlock()
}

// recountLater corrects the count in Redis in the background, after the earlier nested
// calls. turn says that those are over, as it is the caller's turn, which ends with this.
func (h *Engine) recountLater(c *section, turn bool) {
	c.taint()
	h.Calls.Background(func() {
		if !turn {
			c.nesting.serial <- struct{}{}
		}
		defer func() { <-c.nesting.serial }()
		_ = h.Calls.Persist(h.Lease, c.hold.Deadline(), func(ctx context.Context) error {
			n, over := c.count()
			if over != nil {
				return nil // the field is gone, or will be
			}
			if err := h.recountDown(ctx, c, n); scripts.OutcomeOf(err) != scripts.Refused { // see countOut
				return err
			}
			return nil
		})
	})
}

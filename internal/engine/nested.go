package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Nested entries are counted in Redis, so that every process sees true hold
// counts. A call says which count it shall bring about, which makes repeating it
// harmless. The calls of one lease are serialised; the last Unlock waits for
// none of them, since it deletes the field whatever it counts.

// nesting is what a lease needs for nested entries. Guarded by the shard's mu.
type nesting struct {
	serial  chan struct{}       // one slot: a call is under way; immutable
	entries map[*Entry]struct{} // the living ones but the first
}

// nest returns the lease's nesting, under mu.
func (l *lease) nest() *nesting {
	if l.nesting == nil {
		l.nesting = &nesting{serial: make(chan struct{}, 1), entries: make(map[*Entry]struct{}, 1)}
	}
	return l.nesting
}

// busy says whether a nested call is under way.
func (n *nesting) busy() bool { return n != nil && len(n.serial) > 0 }

// reenter adds an entry to the lease of outer.
func (h *Engine) reenter(ctx context.Context, outer *Entry, t Terms, wait bool) (*Entry, error) {
	if !t.plain() {
		return nil, errNested
	}
	l := outer.lease
	s := l.hold.shard()
	s.mu.Lock()
	if err := outer.err(); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	serial := l.nest().serial
	h.work.Add(1) // not closed: Close would have ended the entry
	s.mu.Unlock()
	defer h.work.Done()

	if err := h.awaitTurn(ctx, serial, wait); err != nil {
		return nil, err
	}
	doubt, err := h.countIn(ctx, outer, wait)
	if doubt {
		h.recountLater(l, true)
		return nil, err
	}
	defer func() { <-serial }()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := outer.err(); err != nil {
		return nil, err
	}
	l.entries++
	e := &Entry{lease: l}
	e.public = holdfast.NewLease(e)
	l.nesting.entries[e] = struct{}{}
	return e, nil
}

// awaitTurn waits for the nested calls before this one. They take long only while Redis
// does not answer, which is waited for as by an outermost Lock or TryLock.
func (h *Engine) awaitTurn(ctx context.Context, serial chan<- struct{}, wait bool) error {
	limit := h.calls.timeout
	if wait {
		limit = max(limit, h.MaxOutage)
	}
	for {
		over := time.NewTimer(limit)
		select {
		case serial <- struct{}{}:
			over.Stop()
			return nil
		case <-ctx.Done():
			over.Stop()
			return endedBy(ctx, holdfast.ErrNotAcquired)
		case <-over.C:
			if !h.answeredWithin(limit) {
				return failed(holdfast.ErrUnavailable, h.ours(errNoAnswer))
			}
		}
	}
}

// countIn brings the count in Redis to one more than there are entries. doubt
// says that it may have done so although it failed.
func (h *Engine) countIn(ctx context.Context, outer *Entry, wait bool) (doubt bool, err error) {
	l := outer.lease
	began, retry := time.Now(), backoff{}
	for {
		if over := outer.Err(); over != nil {
			return doubt, over
		}
		n, _ := l.count()
		bounded, done := h.calls.contextFor(ctx)
		err := h.recount(bounded, l, n+1)
		done()
		outcome := scripts.OutcomeOf(err)
		if outcome == scripts.Done {
			return false, nil
		}
		if outcome == scripts.Unknown {
			doubt = true
			l.taint()
		}
		switch {
		case ctx.Err() != nil:
			return doubt, endedBy(ctx, known(err))
		case outcome == scripts.Refused, !wait, time.Since(began) >= h.MaxOutage:
			return doubt, known(err)
		}
		timer := time.NewTimer(retry.next(h.Lease))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return doubt, endedBy(ctx, known(err))
		}
	}
}

// recount makes one call. That the hold is not ours any more ends it.
func (h *Engine) recount(ctx context.Context, l *lease, n int) error {
	d := l.hold
	held, err := aside(ctx, h, func(ctx context.Context) (bool, error) {
		return h.backend.Recount(ctx, d.queue.key, d.owner, n)
	})
	err = h.ours(err)
	h.note(err)
	if err == nil && !held {
		h.lose(d, watchdog.ErrNotOurs)
	}
	return err
}

// count returns the number of entries as they should be counted, and why the
// lease has ended if it has.
func (l *lease) count() (int, error) {
	s := l.hold.shard()
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(l.entries), l.over
}

// unlockNested ends an entry that is not the last, and counts it out in Redis.
// The entry has ended whatever Redis answers. A ctx that is over ends the wait for
// the nested calls before it, but not before a call of its own could have been
// answered. It is called under mu and gives it back.
func (h *Engine) unlockNested(ctx context.Context, s *shard, e *Entry) error {
	l := e.lease
	l.entries--
	var told signals
	told.add(e)
	e.over = true
	serial := l.nest().serial
	delete(l.nesting.entries, e)
	h.work.Add(1)
	s.mu.Unlock()
	defer h.work.Done()
	told.fire(holdfast.ErrReleased)

	patience, gone := h.calls.context().Done(), (<-chan struct{})(nil)
	for waiting := true; waiting; {
		over := time.NewTimer(time.Until(l.hold.Deadline()))
		select {
		case serial <- struct{}{}:
			waiting = false
		case <-over.C:
			if !l.hold.Alive() {
				return lost(watchdog.ErrDeadline)
			}
		case <-patience:
			patience, gone = nil, ctx.Done()
		case <-gone:
			over.Stop()
			h.recountLater(l, false)
			return ended(ctx, failed(holdfast.ErrUnknown, h.ours(errNoAnswer)))
		}
		over.Stop()
	}
	n, end := l.count()
	if end != nil { // the field is gone, or the next lease's
		<-serial
		return l.lostMeanwhile()
	}
	err := h.recount(h.calls.context(), l, n)
	switch scripts.OutcomeOf(err) {
	case scripts.Done, scripts.Refused:
		<-serial
		if err != nil {
			return err
		}
		return l.lostMeanwhile()
	}
	h.recountLater(l, true)
	return failed(holdfast.ErrUnknown, err)
}

// lostMeanwhile is what the recount has found out, if anything.
func (l *lease) lostMeanwhile() error {
	if _, over := l.count(); errors.Is(over, holdfast.ErrLost) {
		return over
	}
	return nil
}

// taint keeps the hold from being handed over: a nested call that may arrive late
// would count for the next lease.
func (l *lease) taint() {
	s := l.hold.shard()
	s.mu.Lock()
	l.hold.tainted = true
	s.mu.Unlock()
}

// recountLater brings the count in Redis to what it should be, in the background,
// when the nested calls before it are over. turn says that they are: this one's own
// ends then.
func (h *Engine) recountLater(l *lease, turn bool) {
	l.taint()
	h.background(func() {
		if !turn {
			l.nesting.serial <- struct{}{}
		}
		defer func() { <-l.nesting.serial }()
		_ = h.persist(l.hold.Deadline(), func(ctx context.Context) error {
			n, over := l.count()
			if over != nil {
				return nil // the field is gone, or will be
			}
			return h.recount(ctx, l, n)
		})
	})
}

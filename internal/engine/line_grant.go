package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// errReplaced is why a lease ends when Redis has granted its key to another owner
// of the same client.
var errReplaced = lost(watchdog.ErrNotOurs)

// hear takes in a message of the inbox. It runs on the reader of the connection.
func (h *Engine) hear(s *shard, key, message string) {
	if g, ok := h.fair.ParseGrant(key, message); ok {
		h.arrives(s, key)
		h.pass(key, scripts.Passed{Grant: g})
	}
}

// pass takes in what a call or a message says of who comes next.
func (h *Engine) pass(key string, said scripts.Passed) {
	s := h.shardOf(key)
	s.mu.Lock()
	var told signals
	if q := s.queues[key]; q != nil && q.line() != nil {
		told = h.passed(s, q, said)
	} else if g := said.Grant; g.Lease > 0 && !q.holds(g.Owner) && !s.closed {
		h.cleanUp(key, orphan{g.Owner, g.Lease})
	}
	s.mu.Unlock()
	told.fire(errReplaced)
}

// passed is pass under mu, for a queue with a line; without one, nobody waits. The
// caller fires what it returns, as errReplaced, after giving mu back.
func (h *Engine) passed(s *shard, q *queue, said scripts.Passed) (told signals) {
	l, g := q.line(), said.Grant
	if said.JavaTurn {
		l.lookAfterJava()
	} else {
		l.turns = 0
	}
	if g.Owner == "" {
		return told
	}
	if said.Ours {
		l.shared = false
	}
	t := l.tickets[g.Owner]
	switch {
	case g.Lease == 0: // only found: who is not known here is in hand, or will expire
		if t != nil {
			h.grantFound(l, q, t)
		}
	case t == nil:
		if !q.holds(g.Owner) && !s.closed {
			l.leave(g.Owner, true) // given up, yet granted
		}
	case t.granted:
	case q.hold != nil, !h.trusted(t, g): // of two grants, the one heard first may be the later
		h.toConfirm(l, q, t)
	default:
		told = h.grant(q, l, t, g)
	}
	return told
}

// holds says whether owner has the key, under mu: it may have been found so, and
// its grant come after.
func (q *queue) holds(owner string) bool { return q != nil && q.hold != nil && q.hold.owner == owner }

// trusted says whether a grant can be relied on without a call: it is trusted
// from the first attempt of its owner to enter, before which it cannot have been
// granted, and no later reply moves that. Under mu.
func (h *Engine) trusted(t *ticket, g scripts.Grant) bool {
	return t.w.terms.plain() && (g.Fence > 0 || !h.Fencing) && time.Since(t.start) < min(g.Lease, h.Lease)/2
}

// grant makes a waiter the holder, under mu.
func (h *Engine) grant(q *queue, l *line, t *ticket, g scripts.Grant) signals {
	w := t.w
	terms := Terms{Lease: min(g.Lease, h.Lease)}
	d := h.newHoldOf(q, t.owner, terms, t.start, scripts.Acquired{Fence: g.Fence, FenceEnd: g.FenceEnd},
		run{doubt: t.doubt, members: g.Members})
	l.done(t)
	told := h.occupy(q, d)
	q.end(w, grant{entry: d.newLease()})
	return told
}

// done forgets a ticket that has served its purpose, under mu.
func (l *line) done(t *ticket) {
	if t.w != nil {
		t.w.ticket, t.w = nil, nil
	}
	if t.own != nil {
		t.own.Close()
	}
	delete(l.tickets, t.owner)
	l.served, l.used = true, time.Now()
}

// occupy makes d the queue's hold, under mu. A hold that is still there is
// another's in Redis: it was lost.
func (h *Engine) occupy(q *queue, d *hold) (told signals) {
	if q.hold != nil {
		told = h.revoke(q.hold, errReplaced)
	}
	q.hold = d
	return told
}

// grantFound is a grant of which nothing else is known than that the owner holds
// the key now, under mu.
func (h *Engine) grantFound(l *line, q *queue, t *ticket) {
	if !t.granted {
		h.toConfirm(l, q, t)
	}
}

// toConfirm ends a wait with a grant that its goroutine has to confirm, under mu.
func (h *Engine) toConfirm(l *line, q *queue, t *ticket) {
	w := t.w
	t.granted = true
	t.w, w.ticket = nil, nil
	h.work.Add(1) // for confirm or decline
	q.end(w, grant{confirm: t})
}

// decline gives up a grant that nobody wants to confirm any more.
func (h *Engine) decline(s *shard, q *queue, t *ticket) {
	defer h.work.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	q.line().drop(t)
}

// confirm asks whether a grant still stands, and sets the lease that was asked
// for. If not, the waiter enters again, at the end of the queue.
func (h *Engine) confirm(ctx context.Context, s *shard, q *queue, w *waiter, t *ticket) (*Entry, error) {
	began, retry := time.Now(), backoff{}
	lease := w.terms.Lease // the call may outlast the waiter
	for {
		start := time.Now()
		bounded, done := h.calls.contextFor(ctx)
		said, err := aside(bounded, h, func(ctx context.Context) (scripts.Acquired, error) {
			return h.fair.Confirm(ctx, q.key, t.owner, lease)
		})
		done()
		err = h.ours(err)
		h.note(err)
		late := time.Since(start) >= lease-watchdog.Margin(lease)
		switch {
		case err == nil && said.OK && !late:
			e, err := h.confirmed(ctx, s, q, w, t, start, said)
			if err != errOvertaken {
				return e, err
			}
			continue
		case err == nil && !said.OK:
			return h.rejoin(ctx, s, q, w, t)
		case err == nil:
			err = errTooLate
		}
		failed := known(err)
		over := ctx.Err() != nil
		if over {
			failed = endedBy(ctx, failed)
		}
		if over || scripts.OutcomeOf(err) == scripts.Refused || time.Since(began) >= h.MaxOutage || h.closedNow(s) {
			h.decline(s, q, t)
			w.free()
			return nil, failed
		}
		timer := time.NewTimer(retry.next(h.Lease))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (h *Engine) closedNow(s *shard) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// errOvertaken is why a confirmation has to be asked for again: meanwhile we have
// heard of another's grant, so that one of the two has been forced out.
var errOvertaken = errors.New("another was granted the key meanwhile")

// confirmed makes the waiter the holder.
func (h *Engine) confirmed(ctx context.Context, s *shard, q *queue, w *waiter, t *ticket, start time.Time, said scripts.Acquired) (*Entry, error) {
	s.mu.Lock()
	if !s.closed && q.hold != nil && q.hold.granted > start.Sub(h.epoch) {
		s.mu.Unlock()
		return nil, errOvertaken
	}
	defer h.work.Done()
	if s.closed {
		q.line().drop(t)
		s.mu.Unlock()
		w.free()
		return nil, holdfast.ErrClosed
	}
	d := h.newHoldOf(q, t.owner, w.terms, start, said, run{doubt: t.doubt})
	q.line().done(t)
	told := h.occupy(q, d)
	e := d.newLease()
	s.mu.Unlock()
	w.free()
	told.fire(errReplaced)
	if ctx.Err() != nil {
		h.giveBack(e.Lease())
		return nil, endedBy(ctx, holdfast.ErrNotAcquired)
	}
	return e, nil
}

// rejoin has a waiter whose grant does not stand any more enter again.
func (h *Engine) rejoin(ctx context.Context, s *shard, q *queue, w *waiter, t *ticket) (*Entry, error) {
	s.mu.Lock()
	q.line().drop(t)
	h.work.Done()
	if s.closed {
		s.mu.Unlock()
		w.free()
		return nil, holdfast.ErrClosed
	}
	q.pushBack(w) // in the order of Redis' queue, see oldest
	w.ticket = &ticket{w: w}
	q.line().outside = append(q.line().outside, w.ticket)
	q.line().nudge()
	s.mu.Unlock()
	return h.await(ctx, s, q, w)
}

// releaseFair makes one attempt to end a fair hold in Redis, which gives the key to
// the next.
func (h *Engine) releaseFair(ctx context.Context, d *hold, lastFence int64) (scripts.Released, error) {
	doubt, served := d.run().report()
	said, err := h.fair.Release(ctx, d.queue.key, d.owner, lastFence, doubt, served...)
	switch scripts.OutcomeOf(err) {
	case scripts.Done:
		h.pass(d.queue.key, said)
	case scripts.Unknown:
		h.lookSoon(d.queue) // it may have granted the key to one of us
	}
	return scripts.Released{Ours: said.Ours}, err
}

package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/scripts"
)

// enter makes one attempt to put owners into Redis' queue. Those whose attempt
// failed try again with the same owner: an owner enters once, however often its
// call is repeated. An attempt is given up well before a first lease is over, as
// the owner may be granted the key before the answer comes.
func (h *Engine) enter(ctx context.Context, s *shard, q *queue, l *line, batch []*ticket) {
	start, owners := time.Now(), make([]string, len(batch))
	s.mu.Lock()
	for i, t := range batch {
		owners[i] = t.owner
		if t.start.IsZero() {
			t.start = start
		}
	}
	s.mu.Unlock()
	said, err := aside(ctx, h, func(ctx context.Context) (scripts.Entered, error) {
		return h.fair.Enter(ctx, q.key, owners...)
	})
	gaveUp := err != nil && ctx.Err() == context.Canceled
	err = h.ours(err)
	if !gaveUp {
		h.note(err)
	}

	s.mu.Lock()
	l.sending--
	if len(l.outside) > 0 {
		l.nudge()
	}
	if gaveUp { // says nothing of Redis; whose call it was is about to leave
		for _, t := range batch {
			t.doubt = true
		}
		s.mu.Unlock()
		return
	}
	a := attempt{start: start, err: err}
	l.outage, l.shut = l.outage.note(a), l.shut.note(a)
	if err != nil {
		h.notEntered(q, l, batch, a)
		s.mu.Unlock()
		return
	}
	l.retry = backoff{}
	if time.Since(start) > h.Stale/2 {
		l.verify, l.look = true, time.Now()
	}
	if start.After(l.answered) {
		l.answered = start
	}
	for i, t := range batch {
		h.entered(q, l, t, said.Places[i])
		if t.distance = said.Distance; said.Java && t.w != nil {
			h.hearJava(s, q, l, t)
		}
	}
	if !s.closed {
		h.startHeartbeats(q, l)
	}
	if said.Grant.Lease > 0 {
		l.shared = false
	}
	told := h.passed(s, q, scripts.Passed{JavaTurn: said.JavaTurn, Grant: said.Grant})
	s.mu.Unlock()
	told.fire(errReplaced)
}

// entered notes what became of a ticket, under mu.
func (h *Engine) entered(q *queue, l *line, t *ticket, place scripts.Place) {
	if t.w == nil { // granted or given up meanwhile
		return
	}
	switch place {
	case scripts.Waiting:
		t.entered = true
	case scripts.Holding:
		t.entered = true
		h.grantFound(l, q, t)
	case scripts.Gone:
		q.again(l, t)
	}
}

// notEntered has those try again whom waiting may help, and ends the waits of the
// others, under mu.
func (h *Engine) notEntered(q *queue, l *line, batch []*ticket, a attempt) {
	waiting := make([]*ticket, 0, len(batch)+len(l.outside))
	for _, t := range batch {
		if t.w == nil {
			continue
		}
		if scripts.OutcomeOf(a.err) == scripts.Unknown {
			t.doubt = true
		} else if !t.doubt {
			delete(l.tickets, t.owner) // surely not there
		}
		if !a.passing() {
			q.end(t.w, grant{err: a.known()})
			continue
		}
		waiting = append(waiting, t)
	}
	l.outside = append(waiting, l.outside...)
	l.pause = time.Now().Add(l.retry.next(h.Lease))
	h.endOverdue(q, l, a)
	l.nudge()
}

// endOverdue ends the waits for which Redis was away for too long, under mu. To those
// outside, answered heartbeats are no help.
func (h *Engine) endOverdue(q *queue, l *line, a attempt) {
	q.endAll(func(w *waiter) error {
		if l.shut != nil && !w.ticket.entered {
			return l.shut.overdue(w, a, h.MaxOutage)
		}
		return l.outage.overdue(w, a, h.MaxOutage)
	})
}

// leaveAll makes one attempt to give up owners.
func (h *Engine) leaveAll(s *shard, q *queue, l *line, batch []leaver) {
	var owners []string
	doubts := 0
	for _, doubt := range []bool{true, false} {
		for _, gone := range batch {
			if gone.doubt == doubt {
				owners = append(owners, gone.owner)
			}
		}
		if doubt {
			doubts = len(owners)
		}
	}
	start := time.Now()
	said, err := aside(h.calls.context(), h, func(ctx context.Context) (scripts.Passed, error) {
		return h.fair.Leave(ctx, q.key, doubts, owners...)
	})
	err = h.ours(err)
	h.note(err)
	s.mu.Lock()
	switch scripts.OutcomeOf(err) {
	case scripts.Done:
		l.retry = backoff{}
		if !l.wanting() { // nothing is tried that could tell of the end of an outage
			l.shut, l.outage = nil, nil
		}
		told := h.passed(s, q, said)
		s.mu.Unlock()
		told.fire(errReplaced)
		return
	case scripts.Unknown:
		l.look = time.Now() // it may have granted the key to one of us
		fallthrough
	case scripts.Unavailable:
		l.pause = time.Now().Add(l.retry.next(h.Lease))
		failed := attempt{start: start, err: err} // nobody enters before it succeeds
		l.outage, l.shut = l.outage.note(failed), l.shut.note(failed)
		h.endOverdue(q, l, failed)
		if time.Since(batch[0].since) < h.Lease+h.calls.timeout && !s.closed {
			l.leaving = append(batch, l.leaving...)
			s.mu.Unlock()
			return
		}
	}
	s.mu.Unlock()
	h.Log.Warn("holdfast: owners could not leave the queue; they are passed over when their client is silent",
		"key", quote(q.key), "owners", len(owners), "error", err)
}

// giveUp is leaveAll for an owner of which no line knows.
func (h *Engine) giveUp(ctx context.Context, key, owner string) error {
	said, err := h.fair.Leave(ctx, key, 1, owner)
	if err == nil {
		h.pass(key, said)
	}
	return err
}

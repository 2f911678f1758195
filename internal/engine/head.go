package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// head is what a queue needs to wait for other processes. It lives as long as
// somebody waits here. It belongs to whoever the queue's key is in the hands of
// (see queue), but for poke.
type head struct {
	sub       Subscription  // nil until another process was met
	contended bool          // another process was met: subscribe before the next attempt
	poke      chan struct{} // one slot: look at the queue again
	turns     turns
	retry     backoff
	tries     int     // attempts that were too late or split of late, for Scatter
	unmet     error   // what the backend says of the last attempt, see attempt; guarded by the shard's mu
	orphan    orphan  // of the last attempt; to be undone before the next
	outage    *outage // set while Redis does not answer; guarded by the shard's mu
	line      *line   // on a fair lock, which needs nothing of the above; guarded by the shard's mu
}

// meet returns the queue's head, under mu.
func (q *queue) meet() *head {
	if q.head == nil {
		q.head = &head{poke: make(chan struct{}, 1)}
	}
	return q.head
}

// nudge makes the loop look at the queue again; nothing if there is no loop.
func (p *head) nudge() {
	if p == nil {
		return
	}
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// leave ends the subscription, with the last waiter.
func (p *head) leave() {
	if p.sub != nil {
		p.sub.Close()
	}
}

func (p *head) heard() pubsub.State {
	if p.sub == nil {
		return pubsub.State{}
	}
	return p.sub.State()
}

// lead talks to Redis for a queue until the key is held here or nobody waits:
// subscribe, try again, sleep until a message or until the holder's lease must
// be over. Nobody else of this process does so for this key. The lock goes to
// whoever is first in the queue when it comes, so that a waiter may leave at
// any moment.
func (h *Engine) lead(s *shard, q *queue) {
	s.mu.Lock()
	p := q.meet()
	s.mu.Unlock()
	seen, remaining := p.heard(), h.Lease
	for resting := p.turns.active(); ; {
		told := false
		switch {
		case p.contended && p.sub == nil:
			h.subscribe(p, q.key)
		case resting:
			told = h.rest(p, seen, remaining)
		}
		s.mu.Lock()
		if q.first == nil {
			h.settle(s, q)
			s.mu.Unlock()
			return
		}
		terms := q.first.terms
		s.mu.Unlock()

		// What is heard from here on is not slept over.
		seen = p.heard()
		a := h.clear(p, q.key)
		if a.err == nil {
			a = h.attempt(h.calls.context(), q, terms, h.numbers(terms))
			p.orphan = a.orphan
		}
		if h.deliver(s, q, a, terms) {
			return
		}
		remaining, resting = a.remaining, a.err == nil && a.hold == nil
		if resting && h.Scatter != nil && (told || a.split) {
			p.tries++
			if a.split {
				remaining = h.Scatter(p.tries)
			}
		}
		if a.err != nil {
			p.pause(p.retry.next(h.Lease))
		}
	}
}

// clear undoes what the last attempt may have left, before the next: one call of
// this process on the key is under way, also while Redis is away.
func (h *Engine) clear(p *head, key string) attempt {
	a, owner := attempt{start: time.Now()}, p.orphan.owner
	if owner == "" {
		return a
	}
	_, err := aside(h.calls.context(), h, func(ctx context.Context) (scripts.Released, error) {
		return h.plain.CleanUp(ctx, key, owner)
	})
	a.err = h.ours(err)
	h.note(a.err)
	if a.err == nil {
		p.orphan = orphan{}
	}
	return a
}

// deliver gives what came of the head's attempt to those who wait. It reports
// whether that was all: the key is held here now, or nobody waits any more.
func (h *Engine) deliver(s *shard, q *queue, a attempt, asked Terms) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.head.outage = q.head.outage.note(a)
	if a.err != nil {
		q.endAll(func(w *waiter) error { return q.head.outage.overdue(w, a, h.MaxOutage) })
		if q.first == nil {
			h.settle(s, q)
			return true
		}
		return false
	}
	q.head.retry, q.head.unmet = backoff{}, a.unmet
	if a.hold != nil && (q.first == nil || q.first.terms != asked) {
		h.undo(a.hold)
		return false
	}
	e := h.take(s, q, a)
	if e == nil {
		q.head.contended = true
		return false
	}
	q.head.turns.reset()
	q.head.tries /= 2
	q.end(q.first, grant{entry: e})
	h.settle(s, q)
	return true
}

// note notes whether Redis answered an attempt, under mu.
func (o *outage) note(a attempt) *outage {
	if a.err == nil {
		return nil
	}
	if o == nil {
		o = &outage{since: a.start}
	}
	o.err = a.known()
	return o
}

// overdue says why w must not wait on after a failed attempt: waiting cannot
// cure it, or Redis was away for too long. Under mu.
func (o *outage) overdue(w *waiter, a attempt, most time.Duration) error {
	if !a.passing() {
		return a.known()
	}
	since := o.since
	if w.since.After(since) {
		since = w.since
	}
	if time.Since(since) >= most {
		return o.err
	}
	return nil
}

// subscribe returns when the subscription is confirmed, so that no release
// after the next attempt can be missed. Without a confirmation (messages not
// allowed, connection away) the timed looks of rest must do.
func (h *Engine) subscribe(p *head, key string) {
	p.sub = h.plain.Subscribe(key)
	limit := time.NewTimer(min(h.calls.timeout, lookWithoutMessages))
	defer limit.Stop()
	for !p.sub.State().Live {
		select {
		case <-p.sub.Wake():
		case <-p.poke:
			return
		case <-limit.C:
			return
		}
	}
}

// rest sleeps until there is reason for the next attempt: a release was heard
// (or, after stepping back, as many as there are others), the subscription was
// made anew, the holder's lease must be over, or the queue is empty. It reports
// whether a release was heard.
func (h *Engine) rest(p *head, seen pubsub.State, remaining time.Duration) (told bool) {
	began := time.Now()
	until, deaf := began.Add(h.longest(remaining)), began.Add(lookWithoutMessages)
	for {
		now, heard := time.Now(), p.heard()
		switch {
		case heard.Epoch != seen.Epoch:
			p.turns.reset()
			return false
		case p.turns.active():
			if p.turns.mine(heard, now) {
				return true
			}
		case heard.Told != seen.Told:
			if h.Scatter != nil {
				p.pause(min(h.Scatter(p.tries), until.Sub(now)))
			}
			return true
		}
		wake := until
		if !heard.Live && deaf.Before(wake) {
			wake = deaf
		}
		if next := p.turns.next(); !next.IsZero() && next.Before(wake) {
			wake = next
		}
		if !now.Before(wake) {
			p.turns.looked(now)
			return false
		}
		timer := time.NewTimer(wake.Sub(now))
		select {
		case <-p.sub.Wake():
		case <-timer.C:
		case <-p.poke:
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// lookWithoutMessages is how often a head looks while its subscription is not
// alive.
const lookWithoutMessages = time.Second

// longest is the longest sleep: until the holder's lease must be over, and not
// beyond one lease of ours.
func (h *Engine) longest(remaining time.Duration) time.Duration {
	if remaining == scripts.NoExpiry || remaining > h.Lease {
		return h.Lease
	}
	return remaining + time.Millisecond // Redis rounds down
}

// pause sleeps for d, or until the queue is empty.
func (p *head) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.poke:
	}
}

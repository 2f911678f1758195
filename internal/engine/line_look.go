package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/scripts"
)

// Heartbeats keep the places of those who wait: one call for all keys of a client,
// five times in the time after which the client would count as dead. A heartbeat also
// looks: a key that is free is granted to the next who waits, a grant whose
// message was lost is found. Each names the oldest waiter of its key, to see that
// the queue is still there; all of them where they may have lost their places,
// and from time to time, to move on the scores that Java reads.

const (
	mostLook = 500              // owners, and a tenth as many keys, in one call
	parallel = 32               // calls under way at once: over a slow link, one after another would be late
	refresh  = 10 * time.Second // how often scores are moved on
)

// heartbeats are the queues in which somebody waits.
type heartbeats struct {
	poke    chan struct{} // one slot: look whether anybody waits; immutable
	mu      sync.Mutex
	queues  map[*queue]struct{} // guarded by mu
	running bool                // guarded by mu
}

func (b *heartbeats) nudge() {
	if b.poke == nil {
		return
	}
	select {
	case b.poke <- struct{}{}:
	default:
	}
}

// startHeartbeats adds a line to the heartbeats, under the shard's mu.
func (h *Engine) startHeartbeats(q *queue, l *line) {
	if l.heartbeating {
		return
	}
	l.heartbeating = true
	b := &h.heartbeats
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queues == nil {
		b.queues = make(map[*queue]struct{})
	}
	b.queues[q] = struct{}{}
	if !b.running {
		b.running = true
		h.background(h.heartbeat)
	}
}

// heartbeat runs as long as somebody waits.
func (h *Engine) heartbeat() {
	period := min(h.Stale/5, refresh/2) // scores end three times refresh after an enter
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	b := &h.heartbeats
	for {
		select {
		case <-ticker.C:
		case <-b.poke:
		}
		b.mu.Lock()
		queues := make([]*queue, 0, len(b.queues))
		for q := range b.queues {
			queues = append(queues, q)
		}
		b.mu.Unlock()
		queues = slices.DeleteFunc(queues, h.stopHeartbeats)
		b.mu.Lock()
		if b.running = len(b.queues) > 0; !b.running {
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		h.lookAt(slices.DeleteFunc(queues, func(q *queue) bool { return h.justEntered(q, period/2) }))
	}
}

// stopHeartbeats takes a queue in which nobody waits out of the heartbeats.
func (h *Engine) stopHeartbeats(q *queue) bool {
	s := h.shardOf(q.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := q.line()
	if l != nil && len(l.tickets) > 0 && !s.closed { // after Close, they are given up
		return false
	}
	if l != nil {
		l.heartbeating = false
	}
	h.heartbeats.mu.Lock()
	defer h.heartbeats.mu.Unlock()
	delete(h.heartbeats.queues, q)
	return true
}

// justEntered says whether all who wait here have tried to enter first a short time ago.
// Whether it worked does not matter: who waits for longer is looked after.
func (h *Engine) justEntered(q *queue, short time.Duration) (all bool) {
	s := h.shardOf(q.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := q.first
	for range q.waiting {
		if t := w.ticket; t != nil {
			if all = time.Since(t.start) < short; !all {
				return false
			}
		}
		w = w.next
	}
	return all
}

// lookSoon has the line looked after, if there is one.
func (h *Engine) lookSoon(q *queue) {
	s := h.shardOf(q.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := q.line(); l != nil {
		l.look = time.Now()
		l.nudge()
	}
}

// lookAfterJava has the line look after 10, 20, 40 … 100 ms: a Java waiter that
// gives up its turn tells nobody. Under mu.
func (l *line) lookAfterJava() {
	at := time.Now().Add(min(10*time.Millisecond<<min(l.turns, 4), 100*time.Millisecond))
	l.turns++
	if l.look.IsZero() || at.Before(l.look) {
		l.look = at
		l.nudge()
	}
}

// hearJava listens for Java's wake-up of a ticket, under mu.
func (h *Engine) hearJava(s *shard, q *queue, l *line, t *ticket) {
	t.own = h.fair.OwnerChannel(q.key, t.owner, func(string) { h.lookSoon(q) })
	l.lookAfterJava() // it may have come before we listened
}

// lookAt looks after queues, with as few calls as may be, several at once.
func (h *Engine) lookAt(queues []*queue) {
	var asked []scripts.Heartbeat
	var of []*queue
	var others sync.WaitGroup
	defer others.Wait()
	places, owners := make(chan struct{}, parallel), 0
	for _, q := range queues {
		for _, b := range h.ask(q) {
			if owners+len(b.Owners) > mostLook || len(asked) >= mostLook/10 {
				full, its := asked, of
				places <- struct{}{}
				others.Go(func() {
					h.lookNow(full, its)
					<-places
				})
				asked, of, owners = nil, nil, 0
			}
			asked, of, owners = append(asked, b), append(of, q), owners+len(b.Owners)
		}
	}
	if len(asked) > 0 {
		h.lookNow(asked, of)
	}
}

// ask is what is asked for a queue.
func (h *Engine) ask(q *queue) (asked []scripts.Heartbeat) {
	s := h.shardOf(q.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := q.line(), time.Now()
	if l == nil {
		return nil
	}
	l.look = time.Time{}
	if l.refreshed.IsZero() {
		l.refreshed = now
	}
	fresh, mute := now.Sub(l.refreshed) >= refresh, !l.inbox.State().Live
	if !fresh && !l.verify && now.Sub(l.answered) < h.Stale {
		b := scripts.Heartbeat{Key: q.key, Mute: mute}
		if t := q.oldest(); t != nil {
			b.Owners, b.Distances = []string{t.owner}, []time.Duration{0}
		}
		return []scripts.Heartbeat{b}
	}
	l.verify = false
	if fresh {
		l.refreshed = now
	}
	b := scripts.Heartbeat{Key: q.key, Mute: mute}
	for owner, t := range l.tickets {
		if !t.entered || t.granted {
			continue
		}
		distance := time.Duration(0)
		if fresh {
			distance = t.distance
		}
		b.Owners, b.Distances = append(b.Owners, owner), append(b.Distances, distance)
		if len(b.Owners) == mostLook {
			asked, b = append(asked, b), scripts.Heartbeat{Key: q.key, Mute: mute}
		}
	}
	return append(asked, b)
}

// oldest is the ticket that has been in Redis' queue for longest, under mu.
func (q *queue) oldest() *ticket {
	w := q.first
	for range q.waiting {
		if w.ticket != nil && w.ticket.entered {
			return w.ticket
		}
		w = w.next
	}
	return nil
}

// lookNow makes one call, which must be over well before the client counts as dead.
func (h *Engine) lookNow(asked []scripts.Heartbeat, of []*queue) {
	start, looked := time.Now(), make([]scripts.Looked, len(asked))
	_, err := aside(h.brief.context(), h, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.fair.Heartbeat(ctx, asked, looked)
	})
	err = h.ours(err)
	h.note(err)
	for i, q := range of {
		l := scripts.Looked{Err: err}
		if err == nil {
			l = looked[i]
			l.Err = h.ours(l.Err)
		}
		h.looked(q, start, asked[i], l)
	}
}

// looked takes in what a look has found out about a queue.
func (h *Engine) looked(q *queue, start time.Time, asked scripts.Heartbeat, said scripts.Looked) {
	s := h.shardOf(q.key)
	s.mu.Lock()
	l := q.line()
	if l == nil {
		s.mu.Unlock()
		if said.Err == nil {
			h.pass(q.key, scripts.Passed{Grant: said.Grant})
		}
		return
	}
	a := attempt{start: start, err: said.Err}
	l.outage = l.outage.note(a)
	if a.err != nil {
		l.verify = l.verify || len(asked.Owners) > 1
		l.look = time.Now().Add(l.relook.next(h.Lease))
		l.nudge()
		h.endOverdue(q, l, a)
		s.mu.Unlock()
		return
	}
	l.relook = backoff{}
	if start.After(l.answered) {
		l.answered = start
	}
	for _, i := range said.Absent {
		if t := l.tickets[asked.Owners[i]]; t != nil && t.w != nil {
			q.again(l, t)
			if len(asked.Owners) == 1 {
				l.verify, l.look = true, start
			}
		}
	}
	told := h.passed(s, q, scripts.Passed{JavaTurn: said.JavaTurn, Grant: said.Grant})
	s.mu.Unlock()
	told.fire(errReplaced)
}

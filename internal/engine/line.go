package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// Fair is the backend of a lock kind that serves first come, first served: those who
// wait stand in a queue in Redis. All methods but the last three may be repeated.
type Fair interface {
	Backend
	// Enter puts owners at the end of the queue, in their order.
	Enter(ctx context.Context, key string, owners ...string) (scripts.Entered, error)
	// Release ends a hold and gives the key to the next.
	Release(ctx context.Context, key, owner string, lastFence int64, doubt bool, served ...string) (scripts.Passed, error)
	// Leave gives up owners wherever they are; of the first doubts of them a call
	// may still arrive.
	Leave(ctx context.Context, key string, doubts int, owners ...string) (scripts.Passed, error)
	// Confirm sets the lease of an owner that was granted key.
	Confirm(ctx context.Context, key, owner string, lease time.Duration) (scripts.Acquired, error)
	// Heartbeat keeps the client's places and looks at the keys.
	Heartbeat(ctx context.Context, asked []scripts.Heartbeat, looked []scripts.Looked) error
	// Inbox hears of the grants to this client.
	Inbox(key string, hear func(message string)) *pubsub.Subscription
	// OwnerChannel hears when Java wakes an owner.
	OwnerChannel(key, owner string, hear func(message string)) *pubsub.Subscription
	// ParseGrant reads a message of the inbox of key.
	ParseGrant(key, message string) (scripts.Grant, bool)
}

// line is what a queue needs to wait in Redis' queue. It lives as long as somebody
// waits here, and a little longer, as who was granted a key often comes back at
// once. Guarded by the shard's mu unless said otherwise.
type line struct {
	inbox   *pubsub.Subscription // immutable
	poke    chan struct{}        // one slot: there may be something to do; immutable
	opened  time.Time            // immutable
	ready   bool                 // the inbox is heard, or was waited for long enough
	epoch   uint64               // of the inbox
	tickets map[string]*ticket   // by owner: of those who may be in Redis' queue, and of those being confirmed
	outside []*ticket            // of those who have still to enter, in their order
	leaving []leaver             // owners to be given up
	sending int                  // enters under way

	served bool      // the last wait ended with a grant
	used   time.Time // when somebody came or was served last
	pause  time.Time // until when Redis is left alone after a failure
	retry  backoff   // of those who enter and leave; an answered look does not end it
	relook backoff   // of looks
	outage *outage   // nothing is answered
	shut   *outage   // no enter is answered, or must wait for a leave that is not; heartbeats may be

	// See line_gather.go.
	gathered time.Time // since when those who want to enter wait for company; zero: they do not
	shared   bool      // the key came from another process last

	// See line_look.go.
	look         time.Time // when to look; zero: with the next heartbeat
	turns        int       // answers in a row that Java has the turn
	verify       bool      // all tickets may have lost their places
	heartbeating bool      // is among the engine's heartbeats
	answered     time.Time // start of the last heartbeat or enter that was answered
	refreshed    time.Time // when the scores were last moved on
}

// ticket is a place in Redis' queue, or the wish for one. Guarded by the shard's
// mu. Its owner enters once in its life; a waiter that loses its place gets
// another ticket.
type ticket struct {
	w        *waiter // nil once it does not wait any more
	owner    string
	start    time.Time     // of the first attempt to enter: a grant is trusted from then on
	distance time.Duration // see scripts.Entered
	own      *pubsub.Subscription
	entered  bool // an attempt to enter was answered
	doubt    bool // an attempt to enter was not answered, and may still arrive
	granted  bool // it is being confirmed
}

// leaver is an owner to be given up.
type leaver struct {
	owner string
	doubt bool
	since time.Time
}

const (
	linger    = time.Second // for how long a line outlives its last waiter
	mostEnter = 100         // owners that enter or leave in one call
)

// openLine makes q's line, under mu of a shard that is not closed.
func (h *Engine) openLine(s *shard, q *queue) *line {
	now := time.Now()
	l := &line{
		poke: make(chan struct{}, 1), opened: now, used: now,
		tickets: make(map[string]*ticket),
	}
	l.inbox = h.fair.Inbox(q.key, func(message string) { h.hear(s, q.key, message) })
	q.head = &head{line: l}
	h.background(func() { h.keepLine(s, q, l) })
	return l
}

func (l *line) nudge() {
	if l == nil {
		return
	}
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// join gives a waiter of q a ticket, and has it enter: on this goroutine where it
// is the only one, else together with the others. It is called under mu and gives
// it back.
func (h *Engine) join(ctx context.Context, s *shard, q *queue, w *waiter) {
	l := q.line()
	if l == nil {
		l = h.openLine(s, q)
	}
	t := &ticket{w: w}
	w.ticket, l.used = t, time.Now()
	if !l.ready || len(l.outside) > 0 || l.sending > 0 && h.Handover > 0 || l.used.Before(l.pause) || h.gathering(q, l, l.used) {
		l.outside = append(l.outside, t)
		l.nudge()
		s.mu.Unlock()
		return
	}
	l.gathered = time.Time{}
	l.sending++
	h.work.Add(1)
	defer h.work.Done()
	h.register(l, t)
	s.mu.Unlock()
	bounded, done := h.brief.contextFor(ctx)
	defer done()
	h.enter(bounded, s, q, l, []*ticket{t})
}

// lineUp makes the caller of a first attempt a waiter, before those who came
// later, under mu.
func (h *Engine) lineUp(s *shard, q *queue, w *waiter, a attempt) {
	l := q.line()
	if l == nil {
		l = h.openLine(s, q)
	}
	w.ticket = &ticket{w: w}
	l.outside = append([]*ticket{w.ticket}, l.outside...)
	l.outage = l.outage.note(a)
	if a.orphan.owner != "" {
		l.leave(a.orphan.owner, true)
	}
	l.nudge()
}

// register gives a ticket its owner, under mu.
func (h *Engine) register(l *line, t *ticket) {
	if t.owner == "" {
		t.owner = h.newOwner()
	}
	l.tickets[t.owner] = t
}

// retire takes back the ticket of a waiter whose wait has ended, under mu.
func (q *queue) retire(w *waiter) {
	if t := w.ticket; t != nil {
		q.line().served = false
		q.line().drop(t)
	}
}

// drop forgets a ticket, under mu; its owner leaves the queue.
func (l *line) drop(t *ticket) {
	if t.w != nil {
		t.w.ticket, t.w = nil, nil
	}
	if t.own != nil {
		t.own.Close()
	}
	if _, sent := l.tickets[t.owner]; sent {
		delete(l.tickets, t.owner)
		l.leave(t.owner, t.doubt || !t.entered)
	}
	l.nudge()
}

// again gives a waiter that has lost its place another ticket, under mu, and puts it
// behind those who have not: the waiters are in the order of Redis' queue.
func (q *queue) again(l *line, t *ticket) {
	w := t.w
	l.drop(t)
	q.remove(w)
	q.pushBack(w)
	w.ticket = &ticket{w: w}
	l.outside = append(l.outside, w.ticket)
}

// leave has an owner given up, under mu.
func (l *line) leave(owner string, doubt bool) {
	l.leaving = append(l.leaving, leaver{owner, doubt, time.Now()})
	l.nudge()
}

// settleLine is settle on a fair lock. The line ends by itself.
func (h *Engine) settleLine(s *shard, q *queue) {
	q.busy = false
	if q.line() == nil && q.hold == nil && q.first == nil && q.calls == 0 && s.queues[q.key] == q {
		delete(s.queues, q.key)
	}
}

// keepLine does what is to be done for a line until nobody needs it.
func (h *Engine) keepLine(s *shard, q *queue, l *line) {
	defer l.inbox.Close()
	for {
		s.mu.Lock()
		now := time.Now()
		h.readiness(l, now)
		paused := now.Before(l.pause) && !s.closed
		switch {
		case len(l.leaving) > 0 && !paused:
			batch := l.leaving[:min(len(l.leaving), mostEnter)]
			l.leaving = l.leaving[len(batch):]
			s.mu.Unlock()
			h.leaveAll(s, q, l, batch)
		case !l.look.IsZero() && !now.Before(l.look):
			s.mu.Unlock()
			h.lookAt([]*queue{q})
		case l.ready && l.sending == 0 && !paused && l.wanting() && !h.gathering(q, l, now):
			batch := h.next(l)
			l.sending++
			s.mu.Unlock()
			h.enter(h.brief.context(), s, q, l, batch)
		case l.over(q, now, s.closed):
			q.head = nil
			h.settleLine(s, q)
			s.mu.Unlock()
			return
		default:
			alarm := l.alarm(now)
			s.mu.Unlock()
			l.rest(alarm.Sub(now))
		}
	}
}

// readiness follows the inbox: whoever enters must be able to hear, and what was
// said while it was not heard has to be looked for. Under mu.
func (h *Engine) readiness(l *line, now time.Time) {
	heard := l.inbox.State()
	if heard.Epoch != l.epoch {
		l.epoch = heard.Epoch
		if l.ready {
			l.look = now
		}
	}
	if heard.Live || !now.Before(l.deaf()) {
		l.ready = true
	}
}

// deaf is how long the first confirmation of the inbox is waited for. Without it
// the heartbeats have to find the grants.
func (l *line) deaf() time.Time { return l.opened.Add(lookWithoutMessages) }

// over says whether the line is not needed any more, under mu.
func (l *line) over(q *queue, now time.Time, closed bool) bool {
	if q.first != nil || len(l.tickets) > 0 || len(l.leaving) > 0 || l.sending > 0 {
		return false
	}
	return closed || !l.served || now.Sub(l.used) >= linger
}

// alarm is when the loop looks at the line by itself, under mu.
func (l *line) alarm(now time.Time) time.Time {
	at := now.Add(linger)
	for _, t := range []time.Time{l.look, l.pause, l.gathered.Add(gather)} {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	if !l.ready && l.deaf().Before(at) {
		at = l.deaf()
	}
	return at
}

// rest sleeps until something may be to be done.
func (l *line) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.poke:
	case <-l.inbox.Wake():
	case <-timer.C:
	}
}

package engine

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Terms are what a caller asks of an outermost hold.
type Terms struct {
	Lease   time.Duration // of the hold
	Fixed   bool          // never renewed
	MaxHold time.Duration // cap on a renewed hold; 0: none

	wait *time.Duration // at most; nil: as the call says
}

// plain terms are those that any two waiters share: a renewed hold without a
// cap, at the client's lease. Only such holds are handed over locally.
func (t Terms) plain() bool { return !t.Fixed && t.MaxHold == 0 }

// queue is the process-local FIFO queue of one key. It exists while the key is
// held, wanted or being released here. Everything in it is guarded by the
// shard's mu.
//
// At every moment the key is in the hands of exactly one of: a hold (hold is
// set), or a goroutine that talks to Redis for it (busy): the caller of a first
// attempt, an Unlock that releases, or the head's loop.
type queue struct {
	key     string
	hold    *hold
	head    *head   // what waiting for other processes needs; nil until then
	first   *waiter // the waiters are a ring: the last is before the first
	waiting int32
	calls   int16 // first attempts and releases under way
	busy    bool
}

// outage is a time during which no attempt was answered.
type outage struct {
	since time.Time // start of the first attempt that failed
	err   error     // what the last one says of its outcome, with its cause
}

// waiter is one call that waits in a queue.
type waiter struct {
	prev, next *waiter
	queued     bool
	ticket     *ticket // its place in Redis' queue, on a fair lock
	terms      Terms
	since      time.Time
	ready      chan grant // one slot; sent to once, by whoever unqueues it for its end
}

// grant is how a wait ends: with an entry, with one that has to be confirmed
// first, or with an error.
type grant struct {
	entry   *Entry
	confirm *ticket
	err     error
}

var waiters = sync.Pool{New: func() any { return &waiter{ready: make(chan grant, 1)} }}

func newWaiter(t Terms) *waiter {
	w := waiters.Get().(*waiter)
	w.terms, w.since = t, time.Now()
	return w
}

// free gives w back to the pool; its ready channel must be empty.
func (w *waiter) free() { waiters.Put(w) }

func (q *queue) pushBack(w *waiter) {
	w.queued = true
	q.waiting++
	if q.first == nil {
		q.first, w.next, w.prev = w, w, w
		return
	}
	w.next, w.prev = q.first, q.first.prev
	w.prev.next, w.next.prev = w, w
}

// pushFront is for the caller of the first attempt: those behind came later.
func (q *queue) pushFront(w *waiter) {
	q.pushBack(w)
	q.first = w
}

func (q *queue) remove(w *waiter) {
	w.queued = false
	q.waiting--
	if q.waiting == 0 {
		q.first = nil
	} else if q.first == w {
		q.first = w.next
	}
	w.prev.next, w.next.prev = w.next, w.prev
	w.prev, w.next = nil, nil
}

// end removes w and ends its wait.
func (q *queue) end(w *waiter, g grant) {
	q.remove(w)
	q.retire(w)
	w.ready <- g
}

// endAll ends every wait for which why gives an error.
func (q *queue) endAll(why func(*waiter) error) {
	w := q.first
	for range q.waiting {
		next := w.next
		if err := why(w); err != nil {
			q.end(w, grant{err: err})
		}
		w = next
	}
}

// line is what waiting needs on a fair lock; nil if nobody waits, under mu.
func (q *queue) line() *line {
	if q.head == nil {
		return nil
	}
	return q.head.line
}

// idle says whether nothing here is known to want or to have the key, under mu.
func (q *queue) idle() bool { return q.hold == nil && q.first == nil && q.calls == 0 && !q.busy }

// full says whether no more may wait in q, under mu.
func (h *Engine) full(q *queue) bool { return h.MaxWaiters > 0 && int(q.waiting) >= h.MaxWaiters }

// unmet is what is known when the wait of w, or an attempt without one, ends
// without the lock.
func (q *queue) unmet(w *waiter) error {
	l := q.line()
	switch {
	case q.head != nil && q.head.outage != nil:
		return q.head.outage.err
	case q.head != nil && q.head.unmet != nil:
		return q.head.unmet
	case l != nil && l.outage != nil:
		return l.outage.err
	case l != nil && l.shut != nil && w != nil && w.ticket != nil && !w.ticket.entered:
		return l.shut.err
	case q.hold != nil:
		return heldHere(q.hold.engine.now() - q.hold.granted)
	}
	return holdfast.ErrNotAcquired
}

// settle is called under mu when nobody talks to Redis for q any more: the head
// goes on if somebody waits for a key that is not held here; a queue that
// nothing needs is dropped.
func (h *Engine) settle(s *shard, q *queue) {
	if h.fair != nil {
		h.settleLine(s, q)
		return
	}
	q.busy = false
	if q.first == nil {
		if q.head != nil {
			q.head.leave()
			h.cleanUp(q.key, q.head.orphan)
			q.head = nil
		}
		if q.hold == nil {
			delete(s.queues, q.key)
		}
		return
	}
	if q.hold == nil {
		q.busy = true
		h.background(func() { h.lead(s, q) })
	}
}

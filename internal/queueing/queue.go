package queueing

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/pubsub"
)

// queue is this locker's side of a key's queue in Redis. It lives as long as its waiters
// and a little longer, as a caller that got a key often comes back immediately. Guarded by the
// stripe's mutex unless said otherwise. The methods need that mutex held, unless they say that
// they take it.
type queue struct {
	*discipline                      // immutable
	key         *engine.Key          // immutable
	inbox       *pubsub.Subscription // immutable
	poke        chan struct{}        // one slot: there may be something to do; immutable
	patience    time.Time            // until then, it waits for the first confirmation of the inbox; without one, heartbeats must find the grants; immutable
	ready       bool                 // the inbox is live, or patience has run out
	epoch       uint64               // of the inbox
	tickets     map[string]*ticket   // by owner: of waiters that may be in Redis' queue, and of those being confirmed
	outside     []*ticket            // of waiters that have yet to enter, in their order
	leaving     []leaver             // owners to be given up
	left        bool                 // leaves go behind the next enter or heartbeat
	entering    int                  // calls to enter under way

	served      time.Time      // when the last wait ended; zero: it ended without a grant
	pause       time.Time      // no calls to enter and leave before then, after a failure
	retry       loop.Backoff   // of calls to enter and leave; an answered heartbeat does not reset it
	outage      *engine.Outage // Redis answers nothing
	had         bool           // this locker had the key when the last heartbeat went out
	why         error          // names the holder of the key, as far as the label of a holder elsewhere is known; nil: not known
	enterOutage *engine.Outage // Redis answers no enter, or no leave, which the loop makes before its enters; it may still answer heartbeats

	// See place.go.
	placesFreed int // places that have become free since this queue was opened, as far as Redis' answers show

	// See linger.go.
	lingerFrom time.Time // since when those outside linger; zero: they do not
	foreign    bool      // the last grant came from another process

	// See heartbeat.go.
	due            time.Time // when to send a heartbeat; zero: with those of the other keys
	early          int       // answers in a row after which a heartbeat should follow soon
	verify         bool      // all tickets may have lost their places
	heartbeating   bool      // among the locker's heartbeats
	server         string    // of these
	heartbeatRetry loop.Backoff
	aliveAt        time.Time // start of an answered heartbeat or enter, of the last ones
	refreshed      time.Time // when the scores were last advanced
}

// ticket is what a waiter has for Redis' queue, before and after it has entered. Guarded by the stripe's mutex.
// Its owner enters only once; a waiter that loses its place gets another ticket.
type ticket struct {
	queue      *queue         // immutable
	w          *engine.Waiter // nil once its wait has ended
	owner      string
	start      time.Time            // of the first attempt to enter: a lease that is granted counts from then on
	ahead      time.Duration        // see wire.EnterReply
	at         int                  // its place plus placesFreed at that time; 0: not known
	wakeUps    *pubsub.Subscription // Java's; nil: none awaited
	entered    bool                 // Redis answered an attempt to enter
	doubt      bool                 // an attempt to enter or to confirm, without an answer, may still arrive
	confirming bool                 // Redis has granted it the key, and its waiter asks whether that still stands
	lease      time.Duration        // that the confirmation asks for
	grant      wire.Grant           // to confirm, as far as it is known; with Config.ConfirmGrants, none that came by a message
}

// leaver is an owner to be given up.
type leaver struct {
	owner string
	doubt bool      // a call of it may still arrive
	until time.Time // from then on, it can have nothing in Redis that lasts
}

const (
	keepIdle = time.Second // how long a queue outlives its last waiter
	maxEnter = 100         // owners that enter or leave in one call
)

// queueOf is the queue of k, or nil.
func queueOf(k *engine.Key) *queue {
	q, _ := k.State().(*queue)
	return q
}

func (q *queue) newTicket(w *engine.Waiter) *ticket {
	t := &ticket{queue: q, w: w}
	w.State = t
	return t
}

// ticketOf is the ticket of a waiter, or nil.
func ticketOf(w *engine.Waiter) *ticket {
	t, _ := w.State.(*ticket)
	return t
}

func (q *queue) register(t *ticket) {
	if t.owner == "" {
		t.owner = q.newSignedOwner()
	}
	q.tickets[t.owner] = t
}

// detach parts a ticket and its waiter.
func (t *ticket) detach() {
	if t.w != nil {
		t.w.State, t.w = nil, nil
	}
	if t.wakeUps != nil {
		t.wakeUps.Close()
	}
}

// drop forgets a ticket, and gives up its owner.
func (q *queue) drop(t *ticket) {
	t.detach()
	if _, sent := q.tickets[t.owner]; sent {
		delete(q.tickets, t.owner)
		q.leave(t.owner, t.doubt || !t.entered, t.lease)
	}
	loop.Poke(q.poke)
}

// done forgets a ticket that has served its purpose.
func (q *queue) done(t *ticket) {
	t.detach()
	q.placesFreed = max(q.placesFreed, t.at)
	q.tellPlaces()
	delete(q.tickets, t.owner)
	q.served = time.Now()
}

// requeue gives a waiter that has lost its place another ticket and makes it the last
// waiter: the waiters are in the order of Redis' queue.
func (q *queue) requeue(t *ticket) {
	w := t.w
	q.drop(t)
	q.key.Remove(w)
	q.enqueue(w)
}

// enqueue makes w the last waiter, with a new ticket.
func (q *queue) enqueue(w *engine.Waiter) {
	q.key.Push(w)
	q.outside = append(q.outside, q.newTicket(w))
	loop.Poke(q.poke)
}

// latest is how late a call may arrive for which nobody waits any more. Tombstones last
// as long.
const latest = time.Minute

// leave gives up an owner, which may have the given lease. While Redis does not answer, it
// tries until the owner can no longer have anything: a late heartbeat makes its place live
// for WaiterTTL, and just before that ends, Redis may grant it the key.
func (q *queue) leave(owner string, doubt bool, lease time.Duration) {
	until := time.Now().Add(latest + q.config.WaiterTTL + max(lease, q.config.GrantLease))
	q.leaving = append(q.leaving, leaver{owner, doubt, until})
	loop.Poke(q.poke)
}

// endOverdue ends the waits that cannot go on: Redis refused a call, or did not answer for too
// long. Answered heartbeats do not help waiters that are still outside.
func (q *queue) endOverdue(err error) {
	q.key.Fail(func(w *engine.Waiter) error {
		if q.enterOutage != nil && !ticketOf(w).entered {
			return q.key.Overdue(w, err, q.enterOutage)
		}
		return q.key.Overdue(w, err, q.outage)
	})
}

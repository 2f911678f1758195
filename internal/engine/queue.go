package engine

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// queued is the discipline of lock kinds that serve first come, first served. Its waiters
// stand in a queue in Redis, each with an owner of its own, and Redis decides whose turn
// it is.
type queued struct {
	*Engine
	backend    Queued       // the engine's; immutable
	brief      calls.Bounds // of enters and heartbeats
	secret     [16]byte     // for sign; immutable
	heartbeats heartbeats
}

func newQueued(h *Engine, backend Queued) *queued {
	d := &queued{Engine: h, backend: backend}
	d.brief.Base = h.calls.Base
	d.brief.Timeout = min(max(h.WaiterTTL/3, 100*time.Millisecond), h.calls.Timeout)
	_, _ = rand.Read(d.secret[:]) // never fails
	d.heartbeats.queues = make(map[string]map[*queue]struct{})
	return d
}

// queue is this locker's side of a key's queue in Redis. It lives as long as its waiters
// and a little longer, as a caller that got a key often comes back at once. Guarded by the
// shard's lock unless said otherwise. The methods need it locked unless they say that they
// lock the key.
type queue struct {
	in       *queued              // immutable
	key      *keyState            // immutable
	inbox    *pubsub.Subscription // immutable
	poke     chan struct{}        // one slot: there may be something to do; immutable
	opened   time.Time            // immutable
	ready    bool                 // the inbox is live, or patience is over
	epoch    uint64               // of the inbox
	tickets  map[string]*ticket   // by owner: of waiters that may be in Redis' queue, and of those being confirmed
	outside  []*ticket            // of waiters that have yet to enter, in their order
	leaving  []leaver             // owners to be given up
	entering int                  // calls to enter under way

	served bool          // the last wait ended with a grant
	used   time.Time     // when a waiter last came or was served
	pause  time.Time     // no calls to enter and leave before then, after a failure
	retry  calls.Backoff // of calls to enter and leave; an answered heartbeat does not reset it
	outage *outage       // Redis answers nothing
	own    bool          // the last heartbeat went out while this locker had the key
	holder error         // names the holder of the key, as far as a holder elsewhere has told its label; nil: not known
	shut   *outage       // Redis answers no enter, or no leave that enters wait for; it may still answer heartbeats

	// See queue_place.go.
	gone int // places that have become free since this queue was opened

	// See queue_linger.go.
	lingerFrom time.Time // since when those outside linger; zero: they do not
	shared     bool      // the last grant came from another process

	// See queue_heartbeat.go.
	due            time.Time // when to send a heartbeat; zero: with those of the other keys
	probes         int       // answers in a row after which a probe should follow soon
	verify         bool      // all tickets may have lost their places
	heartbeating   bool      // among the locker's heartbeats
	server         string    // of these
	heartbeatRetry calls.Backoff
	answered       time.Time // start of the last answered heartbeat or enter
	refreshed      time.Time // when the scores were last moved on
}

// ticket is a place in Redis' queue, or the wish for one. Guarded by the shard's lock.
// Its owner enters only once; a waiter that loses its place gets another ticket.
type ticket struct {
	queue    *queue  // immutable
	w        *waiter // nil once its wait is over
	owner    string
	start    time.Time     // of the first attempt to enter: a lease that is granted counts from then on
	distance time.Duration // see scripts.Entered
	at       int           // its place, and gone at that time; 0: not known
	own      *pubsub.Subscription
	entered  bool          // Redis answered an attempt to enter
	doubt    bool          // an attempt to enter without an answer may still arrive
	granted  bool          // being confirmed
	lease    time.Duration // that the confirmation asks for
}

// leaver is an owner to be given up.
type leaver struct {
	owner string
	doubt bool      // a call of it may still arrive
	until time.Time // from then on, it can have nothing in Redis that lasts
}

const (
	keepIdle  = time.Second // how long a queue outlives its last waiter
	mostEnter = 100         // owners that enter or leave in one call
)

func (k *keyState) queue() *queue {
	if k == nil || k.waiters == nil {
		return nil
	}
	return k.waiters.queue
}

// open returns the queue of k, made if need be, with a ticket for w. The shard is not
// closed.
func (d *queued) open(k *keyState, w *waiter) (*queue, *ticket) {
	q := k.queue()
	if q == nil {
		now := time.Now()
		q = &queue{
			in: d, key: k, poke: make(chan struct{}, 1), opened: now, used: now,
			tickets: make(map[string]*ticket),
		}
		q.inbox = d.backend.Inbox(k.name, func(message string) { d.receive(k.name, message) })
		k.waiters.queue = q
		d.calls.Background(q.run)
	}
	w.ticket = &ticket{queue: q, w: w}
	return q, w.ticket
}

// join lets a waiter enter: on its own goroutine if it is the only one, else together with
// the others.
func (d *queued) join(k *keyState, w *waiter) {
	q, t := d.open(k, w)
	q.used = time.Now()
	if !q.ready || len(q.outside) > 0 || q.entering > 0 && d.LocalHandover > 0 || q.used.Before(q.pause) || q.lingering(q.used) {
		q.outside = append(q.outside, t)
		calls.Nudge(q.poke)
		return
	}
	q.lingerFrom = time.Time{}
	q.entering++
	d.calls.Begin()
	q.register(t)
	w.enters = t
}

func (d *queued) arrive(ctx context.Context, _ *keyState, w *waiter) {
	t := w.enters
	if t == nil {
		return
	}
	w.enters = nil
	defer d.calls.End()
	bounded, done := d.brief.ContextFor(ctx)
	defer done()
	t.queue.enter(bounded, []*ticket{t})
}

// refused lets the caller of a first attempt enter, before later callers.
func (d *queued) refused(k *keyState, w *waiter, a attempt) {
	q, t := d.open(k, w)
	q.outside = append([]*ticket{t}, q.outside...)
	a = k.noted(a)
	q.outage, q.holder = q.outage.note(a), a.unmet
	if a.orphan.owner != "" {
		q.leave(a.orphan.owner, true, a.orphan.lease)
	}
	calls.Nudge(q.poke)
}

func (d *queued) left(_ *keyState, w *waiter) {
	if t := w.ticket; t != nil {
		t.queue.served = false
		t.queue.drop(t)
	}
}

func (d *queued) unmet(k *keyState, w *waiter) error {
	switch q := k.queue(); {
	case q != nil && q.outage != nil:
		return q.outage.err
	case q != nil && q.shut != nil && w != nil && w.ticket != nil && !w.ticket.entered:
		return q.shut.err
	case q != nil && q.holder != nil && k.hold == nil:
		return q.holder
	}
	return k.notAcquired()
}

// release gives the key to the next waiter.
func (d *queued) release(ctx context.Context, held *hold, lastFence int64) (scripts.Released, error) {
	doubt, served := held.run().report()
	said, err := d.backend.Release(ctx, held.key.name, held.owner, lastFence, doubt, served...)
	switch scripts.OutcomeOf(err) {
	case scripts.Done:
		d.pass(held.key.name, said, false)
	case scripts.Unknown, scripts.Doubtful:
		d.heartbeatSoon(held.key) // Redis may have granted the key to a waiter here
	}
	return scripts.Released{Ours: said.Ours}, err
}

// giveUp is queue.leave for an owner that no queue knows.
func (d *queued) giveUp(ctx context.Context, name, owner string) error {
	said, err := d.backend.Leave(ctx, name, 1, owner)
	if err == nil {
		d.pass(name, said, false)
	}
	return err
}

// departs ends the linger of those outside if no other waiter of this process is queued.
func (d *queued) departs(k *keyState) {
	if q := k.queue(); q != nil && !q.lingerFrom.IsZero() && len(q.tickets) < 2 {
		calls.Nudge(q.poke)
	}
}

func (d *queued) released(*keyState, scripts.Released) {}

func (d *queued) settle(k *keyState) {
	if q := k.queue(); q != nil { // its end settles the key
		if k.closed {
			calls.Nudge(q.poke)
		}
	} else if k.idle() && k.ending == nil {
		k.drop()
	}
}

func (q *queue) register(t *ticket) {
	if t.owner == "" {
		t.owner = q.in.newSignedOwner()
	}
	q.tickets[t.owner] = t
}

// detach parts a ticket and its waiter.
func (t *ticket) detach() {
	if t.w != nil {
		t.w.ticket, t.w = nil, nil
	}
	if t.own != nil {
		t.own.Close()
	}
}

// drop forgets a ticket, and gives up its owner.
func (q *queue) drop(t *ticket) {
	t.detach()
	if _, sent := q.tickets[t.owner]; sent {
		delete(q.tickets, t.owner)
		if seed.NoLeave {
			return
		}
		q.leave(t.owner, t.doubt || !t.entered, t.lease)
	}
	calls.Nudge(q.poke)
}

// done forgets a ticket that has served its purpose.
func (q *queue) done(t *ticket) {
	t.detach()
	q.freed(t.at)
	delete(q.tickets, t.owner)
	q.served, q.used = true, time.Now()
}

// again gives a waiter that has lost its place another ticket and makes it the last
// waiter: the waiters are in the order of Redis' queue.
func (q *queue) again(t *ticket) {
	w := t.w
	q.drop(t)
	q.key.remove(w)
	q.enqueue(w)
}

// enqueue makes w the last waiter, with a new ticket.
func (q *queue) enqueue(w *waiter) {
	q.key.push(w)
	w.ticket = &ticket{queue: q, w: w}
	q.outside = append(q.outside, w.ticket)
	calls.Nudge(q.poke)
}

// latest is how late a call may arrive that nobody waits for any more. Tombstones last as
// long.
const latest = time.Minute

// leave gives up an owner, which may have the given lease. While Redis does not answer, it
// tries until the owner can have nothing any more: a late heartbeat makes its place live
// for WaiterTTL, and just before that is over, Redis may grant it the key.
func (q *queue) leave(owner string, doubt bool, lease time.Duration) {
	until := time.Now().Add(latest + q.in.WaiterTTL + max(lease, q.in.GrantLease))
	q.leaving = append(q.leaving, leaver{owner, doubt, until})
	calls.Nudge(q.poke)
}

// run is the loop of the queue, which ends when it is no longer needed. It locks the key.
func (q *queue) run() {
	defer q.inbox.Close()
	k := q.key
	for {
		k.Lock()
		now := time.Now()
		q.checkInbox(now)
		paused := now.Before(q.pause) && !q.in.calls.Over()
		switch {
		case len(q.leaving) > 0 && !paused:
			list := q.leaving[:min(len(q.leaving), mostEnter)]
			q.leaving = q.leaving[len(list):]
			k.Unlock()
			q.leaveAll(list)
		case !q.due.IsZero() && !now.Before(q.due):
			k.Unlock()
			q.in.sendHeartbeats([]*queue{q})
		case q.ready && q.entering == 0 && !paused && q.wanting() && !q.lingering(now):
			list := q.takeOutside()
			q.entering++
			k.Unlock()
			q.enter(q.in.brief.Context(), list)
		case q.over(now):
			k.waiters.queue = nil
			q.in.settle(k)
			k.Unlock()
			return
		default:
			alarm, over := q.alarm(now), (<-chan struct{})(nil)
			if len(q.leaving) > 0 {
				over = q.in.calls.Base.Done()
			}
			k.Unlock()
			q.rest(alarm.Sub(now), over)
		}
	}
}

// checkInbox watches the inbox: a waiter that enters must be able to receive its grant,
// and a heartbeat has to find grants that Redis sent while the inbox was not live.
func (q *queue) checkInbox(now time.Time) {
	inbox := q.inbox.State()
	if inbox.Epoch != q.epoch {
		q.epoch, q.pause = inbox.Epoch, time.Time{} // Redis is back
		if q.ready {
			q.due = now
		}
	}
	if inbox.Live || !now.Before(q.patience()) {
		q.ready = true
	}
}

// patience is when the queue stops waiting for the first confirmation of the inbox.
// Without it, heartbeats have to find the grants.
func (q *queue) patience() time.Time { return q.opened.Add(probeWithoutMessages) }

// over says whether the queue is no longer needed.
func (q *queue) over(now time.Time) bool {
	if q.key.first() != nil || len(q.tickets) > 0 || len(q.leaving) > 0 || q.entering > 0 {
		return false
	}
	return q.key.closed || !q.served || now.Sub(q.used) >= keepIdle
}

// alarm is when the loop looks at the queue again without a wake-up.
func (q *queue) alarm(now time.Time) time.Time {
	at := now.Add(keepIdle)
	for _, t := range []time.Time{q.due, q.pause, q.patience(), q.lingerFrom.Add(linger)} {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	return at
}

// rest sleeps until there may be something to do, or it is over. It needs no lock.
func (q *queue) rest(d time.Duration, over <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-q.poke:
	case <-q.inbox.Wake():
	case <-over:
	case <-timer.C:
	}
}

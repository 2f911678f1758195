package engine

import (
	"iter"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/scripts"
)

// waiters are the waiters of a key, in their order, with the state of their discipline.
// Guarded by the shard's lock.
type waiters struct {
	first    *waiter // of a ring: the last is before the first
	count    int
	answered bool   // Redis has answered a call for the key since the first of them came: its user may touch it
	watching int    // of those, how many want to know their places
	race     *race  // of racing waiters
	queue    *queue // of queued waiters
}

// waiter is one call that waits.
type waiter struct {
	prev, next *waiter
	waiting    bool    // is among the waiters of its key
	ticket     *ticket // of a queued waiter: its place in Redis' queue
	enters     *ticket // of a queued waiter that enters by itself, see arrive; not guarded
	terms      Terms
	since      time.Time
	ready      chan result // one slot; the code that ends the wait sends one result

	// See queue_place.go.
	onPlace func(int) // nil: the place is of no interest; immutable once the wait has begun
	places  chan int  // one slot; nil as long as onPlace is
	told    int       // the last one sent
}

// result is how a wait ends: with the key, with a grant to confirm first, or with an
// error.
type result struct {
	lease   *holdfast.Lease
	confirm *ticket
	err     error
}

func newWaiter(t Terms) *waiter {
	return &waiter{terms: t, since: time.Now(), ready: make(chan result, 1)}
}

// waiterPool keeps waiters of an engine for use again. Each engine has its own: a channel
// that was made in a bubble of testing/synctest must not come up in another.
type waiterPool struct{ pool sync.Pool }

func (p *waiterPool) get(t Terms) *waiter {
	w, _ := p.pool.Get().(*waiter)
	if w == nil {
		return newWaiter(t)
	}
	w.terms, w.since = t, time.Now()
	return w
}

// put takes w back; its ready channel must be empty.
func (p *waiterPool) put(w *waiter) {
	w.onPlace, w.places, w.told = nil, nil, 0
	p.pool.Put(w)
}

// first is the waiter that has waited longest, or nil.
func (k *keyState) first() *waiter {
	if k.waiters == nil {
		return nil
	}
	return k.waiters.first
}

// push makes w the last waiter.
func (k *keyState) push(w *waiter) {
	if k.waiters == nil {
		k.waiters = &waiters{}
	}
	all := k.waiters
	w.waiting = true
	all.count++
	all.answered = all.answered || k.hold != nil
	if w.places != nil {
		all.watching++
	}
	k.engine.observer.queue(k)
	if all.first == nil {
		all.first, w.next, w.prev = w, w, w
		return
	}
	w.next, w.prev = all.first, all.first.prev
	w.prev.next, w.next.prev = w, w
}

// pushFront makes w the first waiter: the caller of a first attempt came before the others.
func (k *keyState) pushFront(w *waiter) {
	k.push(w)
	k.waiters.first = w
}

func (k *keyState) remove(w *waiter) {
	all := k.waiters
	w.waiting = false
	all.count--
	if w.places != nil {
		all.watching--
	}
	k.engine.observer.queue(k)
	if all.count == 0 {
		all.first, all.answered = nil, false
	} else if all.first == w {
		all.first = w.next
	}
	w.prev.next, w.next.prev = w.next, w.prev
	w.prev, w.next = nil, nil
	if all.queue != nil {
		all.queue.tellPlaces()
	}
}

// serve ends the wait of w with the key, or with a grant to confirm.
func (k *keyState) serve(w *waiter, r result) {
	k.remove(w)
	w.ready <- r
}

// all yields the waiters in their order.
func (k *keyState) all() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		w := k.first()
		for n := k.count(); n > 0; n-- {
			next := w.next // yield may remove w
			if !yield(w) {
				return
			}
			w = next
		}
	}
}

func (k *keyState) count() int {
	if k.waiters == nil {
		return 0
	}
	return k.waiters.count
}

// endAll ends every wait for which why gives an error.
func (k *keyState) endAll(why func(*waiter) error) {
	for w := range k.all() {
		if err := why(w); err != nil {
			k.remove(w)
			k.engine.waits.left(k, w)
			w.ready <- result{err: err}
		}
	}
}

// full says whether the key has as many waiters as it may have.
func (k *keyState) full() bool {
	most := k.engine.MaxWaiters
	return most > 0 && k.count() >= most
}

// noted takes in how a call for the waiters of a key has ended, with the key locked. Once Redis
// has answered one, a refusal of the key is an outage.
func (k *keyState) noted(a attempt) attempt {
	all := k.waiters
	switch {
	case all == nil:
	case a.err == nil:
		all.answered = true
	case all.answered:
		a.err = scripts.Lapse(a.err)
	}
	return a
}

// outage is a time without answers from Redis.
type outage struct {
	since time.Time // start of the first attempt that failed
	err   error     // of the last one
}

// note begins, extends or ends an outage with the result of an attempt.
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

// overdue says why w must not wait any longer after a failed attempt, or nil: Redis
// refused it, or was away for too long.
func (o *outage) overdue(w *waiter, a attempt, most time.Duration) error {
	if !a.passing() {
		return a.known()
	}
	if time.Since(calls.Later(o.since, w.since)) >= most {
		return o.err
	}
	return nil
}

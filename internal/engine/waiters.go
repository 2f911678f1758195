package engine

import (
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// waiters are the waiters of a key, in their order, with the state of their discipline.
// Guarded by the stripe's mutex.
type waiters struct {
	first      *Waiter // of a ring: the last is before the first
	count      int
	authorized bool // Redis has answered a call for the key since the first of them came: the user has the rights
	watching   int  // how many of them want to know their places
	state      any  // of the discipline, see Key.State
}

// Waiter is one call that waits.
type Waiter struct {
	key        *Key // for which it waits; immutable until the end of the wait
	prev, next *Waiter
	State      any // of the discipline; guarded by the stripe's mutex
	Terms      Terms
	Since      time.Duration // when it began to wait, by Calls.Now
	ready      chan result   // one slot; the code that ends the wait sends one result

	onPlace func(int) // nil: nobody asks for the place; immutable once the wait has begun
	places  chan int  // one slot; nil as long as onPlace is
	told    int       // the last one sent
}

// result is how a wait ends: with the key, with a grant to confirm first, or with an
// error.
type result struct {
	lease   *holdfast.Lease
	granted Ticket
	err     error
}

// NewWaiter returns a waiter for the key that began to wait at since, by Calls.Now; onPlace is nil, or gets its
// places. It may be one of the engine's pool. Each engine has its own pool: a channel that was made in a bubble
// of testing/synctest must not be used in another.
func (k *Key) NewWaiter(t Terms, onPlace func(int), since time.Duration) *Waiter {
	w, _ := k.engine.pool.Get().(*Waiter)
	if w == nil {
		w = &Waiter{ready: make(chan result, 1)}
	}
	w.key, w.Terms, w.Since, w.onPlace, w.places, w.told = k, t, since, onPlace, nil, 0
	if onPlace != nil {
		w.places = make(chan int, 1)
	}
	return w
}

// putBack puts a waiter into the pool, for use again. Its ready channel must be empty.
func (e *Engine) putBack(w *Waiter) {
	w.key, w.onPlace = nil, nil
	e.pool.Put(w)
}

// waiting reports whether w is among the waiters of its key.
func (w *Waiter) waiting() bool { return w.next != nil }

// FirstWaiter is the one that has waited longest, or nil.
func (k *Key) FirstWaiter() *Waiter {
	if k.waiters == nil {
		return nil
	}
	return k.waiters.first
}

// Push makes w the last waiter.
func (k *Key) Push(w *Waiter) { k.insert(w, k.FirstWaiter()) }

// insert makes w a waiter before another, in a ring.
func (k *Key) insert(w, next *Waiter) {
	if k.waiters == nil {
		k.waiters = &waiters{}
	}
	all := k.waiters
	all.count++
	all.authorized = all.authorized || k.Held()
	if w.places != nil {
		all.watching++
	}
	k.engine.noteWaiterCount(k.Name, all.count, 1)
	if all.first == nil {
		all.first, w.next, w.prev = w, w, w
		return
	}
	w.next, w.prev = next, next.prev
	w.prev.next, w.next.prev = w, w
}

// pushEarly makes w the first waiter: the caller of a first attempt came before the others. With
// several first attempts in parallel, those that did not begin later stay before it.
func (k *Key) pushEarly(w *Waiter) {
	first := k.FirstWaiter()
	next, at := first, 0
	for k.engine.Holds != OneHold && at < k.Waiting() && next.Since <= w.Since {
		next, at = next.next, at+1
	}
	k.insert(w, next)
	if at == 0 {
		k.waiters.first = w
	}
}

// Remove takes a waiter out of the line. The key's mutex is held.
func (k *Key) Remove(w *Waiter) {
	all := k.waiters
	all.count--
	if w.places != nil {
		all.watching--
	}
	k.engine.noteWaiterCount(k.Name, all.count, -1)
	if all.count == 0 {
		all.first, all.authorized = nil, false
	} else if all.first == w {
		all.first = w.next
	}
	w.prev.next, w.next.prev = w.next, w.prev
	w.prev, w.next = nil, nil
}

// Serve ends the wait of w with the key.
func (k *Key) Serve(w *Waiter, lease *holdfast.Lease) {
	k.Remove(w)
	w.ready <- result{lease: lease}
}

// Offer ends the wait of w with a ticket that Redis has granted the key, which the goroutine of w
// confirms or declines.
func (k *Key) Offer(w *Waiter, granted Ticket) {
	k.engine.Calls.Begin()
	k.Remove(w)
	w.ready <- result{granted: granted}
}

// All yields the waiters in their order.
func (k *Key) All() iter.Seq[*Waiter] {
	return func(yield func(*Waiter) bool) {
		w := k.FirstWaiter()
		for n := k.Waiting(); n > 0; n-- {
			next := w.next // yield may remove w
			if !yield(w) {
				return
			}
			w = next
		}
	}
}

// Waiting is how many wait here, 0 if k is nil. The key's mutex is held.
func (k *Key) Waiting() int {
	if k == nil || k.waiters == nil {
		return 0
	}
	return k.waiters.count
}

// Fail ends every wait for which why gives an error.
func (k *Key) Fail(why func(*Waiter) error) {
	for w := range k.All() {
		if err := why(w); err != nil {
			k.Remove(w)
			k.engine.discipline.WaiterLeft(k, w)
			w.ready <- result{err: err}
		}
	}
}

func (k *Key) full() bool {
	most := k.engine.MaxWaiters
	return most > 0 && k.Waiting() >= most
}

// NoteResult notes how a call for the waiters of a key has ended, with the key's mutex held. Once Redis
// has answered one, a refusal of the key is an outage: NoteResult then returns it as such.
func (k *Key) NoteResult(err error) error {
	switch all := k.waiters; {
	case all == nil:
	case all.authorized:
		return wire.AsLapsed(err)
	default:
		all.authorized = err == nil
	}
	return err
}

// Watching reports whether a waiter of the key wants to be told its place.
func (k *Key) Watching() bool { return k.waiters.watching > 0 }

// Tell tells a waiter its place, if the waiter wants to know it and the place is new. The key's mutex is
// held.
func (w *Waiter) Tell(place int) {
	if w.places == nil || place == w.told {
		return
	}
	w.told = place
	select {
	case <-w.places: // its caller has not taken the one before
	default:
	}
	w.places <- place
}

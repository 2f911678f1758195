package engine

import (
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Key is what this locker knows of one key. It exists while the key is held, wanted
// or being released here. Guarded by its stripe's mutex, which is that of other keys, too: nobody
// locks two keys.
//
// Calls for a key keep its state, and Close waits for them:
//
//	begins with       ends with
//	beginCall, begin  finishCall, or EndCall under the mutex and then Calls.End
//	Go                EndCall under the mutex, at the end of its goroutine
//
// Close also waits for a waiter that enters a queue by itself (Discipline.Join to the end of Ticket.Enter), or that has been
// granted the key ([Key.Offer] to the end of Ticket.Confirm or Decline).
type Key struct {
	*stripe                 // immutable
	Name           string   // in Redis, see nameOf; immutable
	oldest         *Hold    // the oldest hold, of a ring: the newest is before it; nil: not held here
	waiters        *waiters // nil until the first waiter
	releasing      *Hold    // the last of those being released; nil: none
	underWay       int32    // calls: first attempts, releases and loops
	sharedAttempts int      // first attempts under way whose holds may be shared
}

// NewKey returns the state of a key that is neither held nor wanted here, for tests of the disciplines.
func (e *Engine) NewKey(name string) *Key { return &Key{stripe: e.stripeOf(name), Name: name} }

// beginCall begins a call for the key of a name, and returns the key's state, made if need be. The
// stripe's mutex is held, and the stripe is not closed.
func (st *stripe) beginCall(name string) *Key {
	k := st.keys[name]
	if k == nil {
		k = &Key{stripe: st, Name: name}
		st.keys[name] = k
	}
	k.begin()
	return k
}

// begin begins a call for the key. The key's mutex is held, and its stripe is not closed.
func (k *Key) begin() {
	k.underWay++
	k.engine.Calls.Begin()
}

// Go runs f in the background, as a call for the key that is under way until EndCall.
func (k *Key) Go(f func()) {
	k.underWay++
	k.engine.Calls.Background(f)
}

// EndCall ends a call for the key that was under way, and settles the key. The key's mutex is held from the
// change that the call makes until EndCall, so that nobody sees the change while the call still counts as
// under way. A caller of beginCall or begin calls Calls.End once it has no more to do.
func (k *Key) EndCall() {
	k.underWay--
	k.engine.discipline.Settle(k)
}

// finishCall is EndCall for a caller that has no more to do. It takes the key's mutex.
func (k *Key) finishCall() {
	k.Lock()
	k.EndCall()
	k.Unlock()
	k.engine.Calls.End()
}

// Busy reports whether a call for the key is under way. Its end settles the key.
func (k *Key) Busy() bool { return k.underWay > 0 }

// Drop forgets a key that is idle.
func (k *Key) Drop() {
	if k.keys[k.Name] == k {
		delete(k.keys, k.Name)
	}
}

// Idle reports whether the key is neither held nor wanted here.
func (k *Key) Idle() bool { return !k.Held() && !k.Busy() && k.FirstWaiter() == nil }

// Closed reports whether Close has ended all waits and leases of the key.
func (k *Key) Closed() bool { return k.closed }

// Stripe is the index of the stripe of the key, which a hash of its name chooses.
func (k *Key) Stripe() int { return k.index }

// holds yields the holds of the key, the newest first. With [OneHold], there is at most
// one. The caller may forget the hold that it gets.
func (k *Key) holds() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		if k == nil || k.oldest == nil {
			return
		}
		for h, last := k.oldest.prev, k.oldest; ; {
			next := h.prev
			if !yield(h) || h == last {
				return
			}
			h = next
		}
	}
}

func (k *Key) add(h *Hold) {
	if k.oldest == nil {
		k.oldest, h.prev, h.next = h, h, h
		return
	}
	h.prev, h.next = k.oldest.prev, k.oldest
	h.prev.next, h.next.prev = h, h
}

func (k *Key) has(h *Hold) bool { return h.next != nil }

// remove removes a hold that has ended. It reports whether it was one of the key's until now.
func (k *Key) remove(h *Hold) bool {
	if !k.has(h) {
		return false
	}
	switch {
	case h.next == h:
		k.oldest = nil
	case k.oldest == h:
		k.oldest = h.next
	}
	h.prev.next, h.next.prev = h.next, h.prev
	h.prev, h.next = nil, nil
	return true
}

// Held reports whether the key has a hold here.
func (k *Key) Held() bool { return k.oldest != nil }

// HeldSince reports whether it has one that was granted after that time.
func (k *Key) HeldSince(t time.Time) bool {
	return k.oldest != nil && k.oldest.granted > k.engine.Calls.At(t)
}

// HeldBy reports whether owner has the key here, or is releasing it. Redis has ended all
// earlier owners.
func (k *Key) HeldBy(owner string) bool {
	return k != nil && (k.oldest != nil && k.oldest.Owner == owner || k.Releasing() && k.releasing.Owner == owner)
}

// Releasing reports whether a hold of the key is being released.
func (k *Key) Releasing() bool { return k.releasing != nil }

// released notes that the release of h has ended; if it has failed with err, for good. The key's mutex is held.
func (k *Key) released(h *Hold, err error) {
	if k.releasing == h {
		k.releasing = nil
	}
	if err != nil {
		k.engine.discipline.HoldLost(k, h)
		k.engine.backend.Abandoned(h.Owner)
	}
}

// NotAcquired is ErrNotAcquired. If this locker holds the key, the error says how long its
// oldest hold has lasted.
func (k *Key) NotAcquired() error {
	if k.oldest != nil {
		return errs.Here(k.engine.Calls.Now()-k.oldest.granted, k.oldest.extras.label)
	}
	return holdfast.ErrNotAcquired
}

// State is what the discipline keeps for the key and its waiters; nil at first.
func (k *Key) State() any {
	if k == nil || k.waiters == nil {
		return nil
	}
	return k.waiters.state
}

// SetState sets it, with the key's mutex held.
func (k *Key) SetState(state any) {
	if k.waiters == nil {
		k.waiters = &waiters{}
	}
	k.waiters.state = state
}

package racing

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/pubsub"
)

// race is the state of racing waiters of a key. It lives as long as they do. The stripe's mutex
// guards it, except poke and what belongs to its loop.
type race struct {
	*discipline               // immutable
	key         *engine.Key   // immutable
	running     bool          // the loop runs
	probe       bool          // the next attempt need not wait for a message
	sub         Subscription  // nil until the race meets another process; set by the loop
	contended   bool          // met another process: subscribe before the next attempt
	poke        chan struct{} // one slot: look at the waiters and at probe
	wide        int           // attempts that have succeeded since one found no room, with engine.ManyHolds
	extra       int           // attempts of widen that are under way
	turns       turns
	atRelease   pubsub.State   // of sub, before our last release
	retry       loop.Backoff   // owned by the loop
	splits      splits         // owned by the loop
	why         error          // the backend's reason for the last failure, see engine.Attempt
	orphan      *engine.Orphan // of the last attempt; to be undone before the next; owned by the loop, or by the first attempt before it
	outage      *engine.Outage // set while Redis does not answer
}

// ensureRace returns the race for k, made if need be. The key's mutex is held.
func (d *discipline) ensureRace(k *engine.Key) *race {
	r := raceOf(k)
	if r == nil {
		r = &race{discipline: d, key: k, poke: make(chan struct{}, 1)}
		k.SetState(r)
	}
	return r
}

// raceOf is the race for k, or nil, with the key's mutex held.
func raceOf(k *engine.Key) *race {
	r, _ := k.State().(*race)
	return r
}

// seen is what the subscription has received up to now.
func (r *race) seen() pubsub.State {
	if r.sub == nil {
		return pubsub.State{}
	}
	return r.sub.State()
}

// releases counts the releases since this process last had the key, or began to wait.
func (r *race) releases(now pubsub.State) uint64 {
	return now.Messages - min(r.atRelease.Messages, now.Messages)
}

// loop is the loop that talks to Redis for the waiters of a key: subscribe, try again,
// sleep until a message or until the holder's lease must have ended. It ends when it has got
// the key, or the key has no waiters. There is at most one for a key of a locker. The key
// goes to the waiter that is first when the answer comes, so a waiter may leave at any
// moment.
func (r *race) loop() {
	r.key.Lock()
	seen, until, resting, split := r.seen(), time.Now().Add(r.engine.Lease), r.turns.active(), false
	r.key.Unlock()
	for {
		notified := false
		switch {
		case r.unheard():
			// So it cannot miss a release after its next attempt. Without a confirmation
			// (messages not allowed, connection lost) the timed attempts of rest must do.
			r.subscribe(min(r.engine.Calls.Timeout, probeWithoutMessages), func(now pubsub.State) bool { return now.Live })
		case resting:
			if notified = r.rest(seen, until, split); notified {
				r.engine.Woken(r.key.Name)
			}
		}
		terms, ok := r.wanted()
		if !ok {
			return
		}
		// A message from here on cuts the next sleep short.
		seen = r.seen()
		a := r.clear()
		if a.Err == nil {
			a = r.try(terms)
			r.orphan = a.Orphan
		}
		if r.deliver(a, terms) {
			return
		}
		resting = a.Err == nil && a.Hold == nil
		tries := 0
		if split, tries = r.splits.note(a); tries > 0 {
			until = time.Now().Add(2*r.engine.RTT() + r.delay(tries))
		} else {
			until = a.Start.Add(r.longest(a.Remaining)) // the reply may have come late
		}
		if a.Err != nil {
			// A new subscription ends the pause: Redis is back. Only the subscriptions' one
			// connection looks for it often, however many keys have waiters.
			r.subscribe(r.retry.Within(r.engine.Lease), func(now pubsub.State) bool { return now.Epoch != seen.Epoch })
		}
	}
}

// splits are the attempts of a race at a quorum whose nodes did not agree.
type splits struct {
	count    int    // split votes, minus the attempts without one
	holder   string // who had all of the key at the last attempt without one
	remnants int    // attempts since at which only some nodes still said so
}

// note reports whether an attempt ended in a split vote, and the tries for the RetryDelay before the next attempt; 0: it
// needs none.
func (s *splits) note(a engine.Attempt) (split bool, tries int) {
	switch {
	case !a.Split:
		*s = splits{count: max(s.count-1, 0), holder: a.Holder}
		return false, 0
	case s.holder != "" && a.Holder == s.holder: // its release is under way: the next message may be that of the last node
		s.remnants++
		return false, s.remnants
	}
	s.count++
	return true, s.count
}

// unheard reports whether the race has met another process and does not listen yet.
func (r *race) unheard() bool {
	r.key.Lock()
	defer r.key.Unlock()
	return r.contended && r.sub == nil
}

// wanted returns the terms of the first waiter, for an attempt. Without waiters, it ends the loop.
func (r *race) wanted() (engine.Terms, bool) {
	r.key.Lock()
	defer r.key.Unlock()
	if w := r.key.FirstWaiter(); w != nil {
		r.probe = false
		r.widen()
		return w.Terms, true
	}
	r.stop()
	return engine.Terms{}, false
}

// try makes an attempt for a waiter with these terms.
func (r *race) try(terms engine.Terms) engine.Attempt {
	return r.engine.Try(r.engine.Calls.Context(), r.key, terms, r.engine.FencesToReserve(terms))
}

// maxExtra is how many attempts may be under way for a key that are not of its loop. They share calls
// to Redis.
const maxExtra = 64

// widen makes extra attempts, because room for some is often room for more: as many as have succeeded since one
// found no room. So N permits that are given back serve N waiters in about log2 N
// round trips. The loop does not depend on them: it goes on until its own finds no room.
// The key's mutex is held.
func (r *race) widen() {
	k, n := r.key, 0
	for w := range k.All() {
		if n++; n > 1+r.wide || r.extra == maxExtra {
			return
		}
		if n <= 1+r.extra { // has been asked for
			continue
		}
		terms := w.Terms
		r.extra++
		k.Go(func() {
			a := r.try(terms)
			r.engine.Undo(a.Orphan)
			k.Lock()
			defer k.Unlock()
			r.extra--
			if k.NoteResult(a.Err) == nil {
				r.serve(a, terms)
			} else {
				r.wide = 0
			}
			k.EndCall()
		})
	}
}

// stop ends the loop, with the key's mutex held.
func (r *race) stop() {
	r.running, r.probe = false, false
	r.key.EndCall()
}

// look makes the loop, if it runs, look at the race again; r may be nil. The key's mutex is held.
func (r *race) look() {
	if r != nil && r.running {
		loop.Poke(r.poke)
	}
}

// hurry makes the loop, if it runs, try again without a message; r may be nil. The key's mutex is held.
func (r *race) hurry() {
	if r != nil {
		r.probe = r.running
		r.look()
	}
}

// clear undoes what the last attempt may have left before the next one, so that this
// process has one call for the key under way, even while Redis is unavailable.
func (r *race) clear() engine.Attempt {
	a := engine.Attempt{Start: time.Now()}
	if r.orphan == nil {
		return a
	}
	if a.Err = r.engine.UndoOnce(r.orphan); a.Err == nil {
		r.orphan = nil
	}
	return a
}

// deliver gives the result of an attempt to the waiters. It reports whether the loop has
// ended: the key is held here now, or has no waiters any more.
func (r *race) deliver(a engine.Attempt, terms engine.Terms) (over bool) {
	k := r.key
	k.Lock()
	defer k.Unlock()
	a.Err = k.NoteResult(a.Err)
	r.outage = r.outage.Note(a.Start, a.Err)
	if a.Err != nil {
		r.wide = 0
		k.Fail(func(w *engine.Waiter) error { return k.Overdue(w, a.Err, r.outage) })
		over = k.FirstWaiter() == nil
	} else {
		r.retry, r.why = loop.Backoff{}, a.Why
		over = r.serve(a, terms)
	}
	if over {
		r.stop() // unless a key has one hold, it begins again for the next waiter
	}
	return over
}

// serve gives the hold of an attempt, if it has one, to a waiter, and reports whether it did. The key's mutex
// is held.
func (r *race) serve(a engine.Attempt, terms engine.Terms) bool {
	w := r.waiterFor(terms)
	if a.Hold != nil && w == nil {
		r.engine.Undo(a.Hold.Orphan())
		return false
	}
	if r.engine.Adopt(a, w) == nil {
		r.contended, r.wide = true, 0
		return false
	}
	if r.engine.Holds == engine.ManyHolds {
		r.wide++
	}
	r.turns.reset()
	if n := r.releases(r.seen()); n > 0 && r.delay != nil {
		r.usual[r.key.Stripe()].Note(int64(n << 10))
	}
	return true
}

// waiterFor is the first waiter, if it asked for those terms. With several attempts in parallel, it is
// the first that asked for them.
func (r *race) waiterFor(terms engine.Terms) *engine.Waiter {
	for w := range r.key.All() {
		switch {
		case w.Terms == terms:
			return w
		case r.engine.Holds == engine.OneHold:
			return nil
		}
	}
	return nil
}

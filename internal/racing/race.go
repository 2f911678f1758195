package racing

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/planted"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// race is the state of racing waiters of a key. It lives as long as they do. The shard's lock
// guards it, except poke and what belongs to its loop.
type race struct {
	running   bool          // the loop runs
	probe     bool          // the next attempt need not wait for a message
	sub       Subscription  // nil until the race meets another process; set by the loop
	contended bool          // met another process: subscribe before the next attempt
	poke      chan struct{} // one slot: look at the waiters and at probe
	wide      int           // attempts that have succeeded since one was refused, with engine.Config.ManyHolds
	extra     int           // attempts of widen that are under way
	turns     turns
	before    pubsub.State   // of sub, before our last release
	retry     calls.Backoff  // owned by the loop
	tries     int            // split votes, minus the attempts without one; for RetryDelay; owned by the loop
	why       error          // the backend's reason for the last failure, see engine.Attempt
	orphan    *engine.Orphan // of the last attempt; to be undone before the next; owned by the loop, or by the first attempt before it
	outage    *engine.Outage // set while Redis does not answer
}

// ensureRace returns the race for k, made if need be. The key is locked.
func ensureRace(k *engine.Key) *race {
	p := raceOf(k)
	if p == nil {
		p = &race{poke: make(chan struct{}, 1)}
		k.SetState(p)
	}
	return p
}

// raceOf is the race for k, or nil, with the key locked.
func raceOf(k *engine.Key) *race {
	p, _ := k.State().(*race)
	return p
}

// seen is what the subscription has received up to now.
func (p *race) seen() pubsub.State {
	if p.sub == nil {
		return pubsub.State{}
	}
	return p.sub.State()
}

// releases counts the releases since this process last had the key, or began to wait.
func (p *race) releases(now pubsub.State) uint64 {
	return now.Messages - min(p.before.Messages, now.Messages)
}

// run is the loop that talks to Redis for the waiters of a key: subscribe, try again,
// sleep until a message or until the holder's lease must have ended. It ends when it has got
// the key, or the key has no waiters. There is at most one for a key in this process. The key
// goes to the waiter that is first when the answer comes, so a waiter may leave at any
// moment.
func (r *racing) run(k *engine.Key) {
	k.Lock()
	p := ensureRace(k)
	seen, until, resting := p.seen(), time.Now().Add(r.engine.Lease), p.turns.active()
	k.Unlock()
	for {
		notified := false
		switch {
		case r.unheard(k, p):
			// So it cannot miss a release after its next attempt. Without a confirmation
			// (messages not allowed, connection lost) the timed attempts of rest must do.
			r.subscribe(k, p, min(r.engine.Calls.Timeout, probeWithoutMessages), func(now pubsub.State) bool { return now.Live })
		case resting:
			if notified = r.rest(k, p, seen, until); notified {
				r.engine.Woken(k.Name)
			}
		}
		asked, ok := r.wanted(k, p)
		if !ok {
			return
		}
		// A message from here on cuts the next sleep short.
		seen = p.seen()
		a := r.clear(p, k.Name)
		if a.Err == nil {
			a = r.engine.Attempt(r.engine.Calls.Context(), k, asked, r.engine.FencesToReserve(asked))
			p.orphan = a.Orphan
		}
		if r.deliver(k, p, a, asked) {
			return
		}
		resting = a.Err == nil && a.Hold == nil
		if !a.Split {
			p.tries = max(p.tries-1, 0)
			until = a.Start.Add(r.longest(a.Remaining)) // the reply may have come late
		} else {
			p.tries++
			until = time.Now().Add(2*r.engine.RTT() + r.delay(p.tries))
		}
		if a.Err != nil {
			// A new subscription ends the pause: Redis is back. Only the subscriptions' one
			// connection looks for it often, however many keys have waiters.
			r.subscribe(k, p, p.retry.Next(r.engine.Lease), func(now pubsub.State) bool { return now.Epoch != seen.Epoch })
		}
	}
}

// unheard reports whether the race has met another process and does not listen yet.
func (r *racing) unheard(k *engine.Key, p *race) bool {
	k.Lock()
	defer k.Unlock()
	return p.contended && p.sub == nil
}

// wanted returns the terms of the first waiter, for an attempt. Without waiters, it ends the loop.
func (r *racing) wanted(k *engine.Key, p *race) (engine.Terms, bool) {
	k.Lock()
	defer k.Unlock()
	if w := k.FirstWaiter(); w != nil {
		p.probe = false
		r.widen(k, p)
		return w.Terms, true
	}
	p.end(k)
	return engine.Terms{}, false
}

// mostExtra is how many attempts may be under way for a key that are not of its loop. They share calls
// to Redis.
const mostExtra = 64

// widen makes extra attempts, for as many waiters as attempts have succeeded since one was refused: room
// for some is often room for more. So N permits that are given back serve N waiters in about log2 N
// round trips. The loop does not depend on them: it goes on until Redis refuses its own.
// The key is locked.
func (r *racing) widen(k *engine.Key, p *race) {
	n := 0
	for w := range k.All() {
		if n++; n > 1+p.wide || p.extra == mostExtra {
			return
		}
		if n <= 1+p.extra { // has been asked for
			continue
		}
		asked := w.Terms
		p.extra++
		k.Go(func() {
			a := r.engine.Attempt(r.engine.Calls.Context(), k, asked, r.engine.FencesToReserve(asked))
			r.engine.Undo(a.Orphan)
			k.Lock()
			defer k.Unlock()
			p.extra--
			if a = k.NoteResult(a); a.Err == nil {
				r.serve(k, p, a, asked)
			} else {
				p.wide = 0
			}
			k.End()
		})
	}
}

// end ends the loop, with the key locked.
func (p *race) end(k *engine.Key) {
	p.running, p.probe = false, false
	k.End()
}

// look makes the loop, if it runs, look at the race again. The key is locked.
func (p *race) look() {
	if p.running {
		loop.Nudge(p.poke)
	}
}

// hurry makes the loop, if it runs, try again without a message. The key is locked.
func (p *race) hurry() {
	p.probe = p.running
	p.look()
}

// clear undoes what the last attempt may have left before the next one, so that this
// process has one call for the key under way, even while Redis is unavailable.
func (r *racing) clear(p *race, name string) engine.Attempt {
	a := engine.Attempt{Start: time.Now()}
	if p.orphan == nil {
		return a
	}
	c, owner := r.engine.Calls, p.orphan.Owner
	_, a.Err = calls.DetachedNoted(c.Context(), c, name, func(ctx context.Context) (scripts.Released, error) {
		return r.backend.GiveUp(ctx, name, owner)
	})
	if a.Err == nil {
		p.orphan = nil
	}
	return a
}

// deliver gives the result of an attempt to the waiters. It reports whether the loop has
// ended: the key is held here now, or has no waiters any more.
func (r *racing) deliver(k *engine.Key, p *race, a engine.Attempt, asked engine.Terms) bool {
	k.Lock()
	defer k.Unlock()
	a = k.NoteResult(a)
	p.outage = p.outage.Note(a)
	if a.Err != nil {
		p.wide = 0
		k.EndAll(func(w *engine.Waiter) error { return k.Overdue(w, a, p.outage) })
		if k.FirstWaiter() != nil {
			return false
		}
		p.end(k)
		return true
	}
	p.retry, p.why = calls.Backoff{}, a.Why
	if !r.serve(k, p, a, asked) {
		return false
	}
	p.end(k) // with engine.Config.ManyHolds, it begins again for the next waiter
	return true
}

// serve gives the hold of an attempt, if it has one, to a waiter, and reports whether it did. The key
// is locked.
func (r *racing) serve(k *engine.Key, p *race, a engine.Attempt, asked engine.Terms) bool {
	w, lease := r.waiter(k, asked), (*holdfast.Lease)(nil)
	switch {
	case a.Hold == nil:
	case w == nil:
		r.engine.Undo(a.Hold.Orphan())
		return false
	default:
		lease = r.engine.Take(k, a, w.Since)
	}
	if lease == nil {
		p.contended, p.wide = true, 0
		return false
	}
	if r.engine.ManyHolds && !r.engine.SharedHolds {
		p.wide++
	}
	p.turns.reset()
	if n := p.releases(p.seen()); n > 0 && r.delay != nil {
		r.usualReleases(k).Note(time.Duration(n << 10))
	}
	k.Serve(w, lease)
	k.ServeReaders(a.Hold)
	return true
}

// waiter is the first waiter, if it asked for those terms. With several attempts in parallel, it is
// the first that asked for them.
func (r *racing) waiter(k *engine.Key, asked engine.Terms) *engine.Waiter {
	for w := range k.All() {
		switch {
		case w.Terms == asked:
			return w
		case !r.engine.ManyHolds:
			return nil
		}
	}
	return nil
}

// probeWithoutMessages is how often a loop tries while its subscription is not live.
const probeWithoutMessages = time.Second

// subscribe subscribes to the releases of a key, unless the race has done so, and sleeps for
// at most d until the subscription is as wanted.
func (r *racing) subscribe(k *engine.Key, p *race, d time.Duration, wanted func(pubsub.State) bool) {
	if p.sub == nil {
		sub := r.backend.Subscribe(k.Name)
		k.Lock()
		p.sub = sub
		k.Unlock()
	}
	limit := time.NewTimer(d)
	defer limit.Stop()
	for !wanted(p.sub.State()) {
		select {
		case <-p.sub.Wake():
		case <-p.poke:
			if r.called(k, p) {
				return
			}
		case <-limit.C:
			return
		}
	}
}

// called reports whether the loop must not sleep on.
func (r *racing) called(k *engine.Key, p *race) bool {
	k.Lock()
	defer k.Unlock()
	return k.FirstWaiter() == nil || p.probe
}

// rest sleeps until there is a reason for the next attempt, and reports whether that was a
// message. A release of another process is a reason; after stepping back, the last of those that
// it lets pass. Others are a release of ours that nobody else listens to, a new subscription, the
// moment until, and that nobody waits any more.
func (r *racing) rest(k *engine.Key, p *race, before pubsub.State, until time.Time) (notified bool) {
	blind := time.Now().Add(probeWithoutMessages)
	last, due := before.Messages, time.Time{}
	k.Lock()
	defer k.Unlock()
	for {
		now, seen := time.Now(), p.seen()
		switch {
		case k.FirstWaiter() == nil, p.probe:
			return false
		case seen.Epoch != before.Epoch && !planted.DeafReconnect:
			p.turns.reset()
			return false
		case p.turns.active():
			if p.turns.mine(seen, now) {
				return true
			}
		case seen.Notified-before.Notified > p.turns.coming: // not only ours
			if r.delay == nil {
				return true
			}
			if seen.Messages != last || due.IsZero() {
				last, due = seen.Messages, now.Add(r.holdBack(k, p, seen))
			}
			if !now.Before(due) {
				return true
			}
		}
		wake := until
		if !due.IsZero() && due.Before(wake) {
			wake = due
		}
		if !seen.Live && blind.Before(wake) && !planted.DeafReconnect {
			wake = blind
		}
		if next := p.turns.next(); !next.IsZero() && next.Before(wake) {
			wake = next
		}
		if !now.Before(wake) {
			p.turns.probed(now)
			return false
		}
		k.Unlock()
		timer := time.NewTimer(wake.Sub(now))
		select {
		case <-p.sub.Wake():
		case <-timer.C:
		case <-p.poke:
		}
		timer.Stop()
		k.Lock()
	}
}

// holdBack is how long a race with split votes waits after a release. A race tries immediately if it
// has let as many releases pass as a wait for a key of this shard usually does. For each release
// fewer it waits one round trip more, up to a few: so those that came first go first, and they do
// not ask at the same time. As long as many do nevertheless, the delay is random as well.
func (r *racing) holdBack(k *engine.Key, p *race, seen pubsub.State) time.Duration {
	const most = 4
	behind := float64(r.usualReleases(k).Load())/(1<<10) - float64(p.releases(seen))
	d := time.Duration(min(max(behind, 0), most) * float64(r.engine.RTT()))
	if p.tries > 0 {
		d += r.delay(p.tries - 1)
	}
	return d
}

// longest is the longest sleep: until the holder's lease must be over, but at most one
// lease of ours.
func (r *racing) longest(remaining time.Duration) time.Duration {
	if remaining == scripts.NoExpiry || remaining > r.engine.Lease {
		return r.engine.Lease
	}
	return remaining + time.Millisecond // Redis rounds down
}

package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// racing is the discipline of lock kinds whose processes race for a key. Its waiters
// queue here. One loop for all of them subscribes to the releases of the key and tries
// again after each; the waiters themselves send no command.
type racing struct {
	*Engine
	backend Racing // the engine's; immutable
}

// race is the state of racing waiters of a key. It lives as long as they do. It belongs,
// except for poke, to the one that has the key in hand (see keyState).
type race struct {
	sub       Subscription  // nil until the race meets another process
	contended bool          // met another process: subscribe before the next attempt
	poke      chan struct{} // one slot: look at the waiters again
	turns     turns
	before    pubsub.State // of sub, before our last release
	retry     calls.Backoff
	tries     int     // split votes, less the attempts without one; for RetryDelay
	unmet     error   // the backend's reason for the last failure, see attempt; guarded by the shard's lock
	orphan    orphan  // of the last attempt; to be undone before the next
	outage    *outage // set while Redis does not answer; guarded by the shard's lock
}

// race returns the race for k, made if need be. The key is locked and has waiters.
func (k *keyState) race() *race {
	if k.waiters.race == nil {
		k.waiters.race = &race{poke: make(chan struct{}, 1)}
	}
	return k.waiters.race
}

// met is the race for k, or nil, with the key locked.
func (k *keyState) met() *race {
	if k.waiters == nil {
		return nil
	}
	return k.waiters.race
}

// seen is what the subscription has received up to now.
func (p *race) seen() pubsub.State {
	if p.sub == nil {
		return pubsub.State{}
	}
	return p.sub.State()
}

// passed counts the releases since this process last had the key, or began to wait.
func (p *race) passed(now pubsub.State) uint64 {
	return now.Messages - min(p.before.Messages, now.Messages)
}

func (r *racing) join(*keyState, *waiter) {}

func (r *racing) arrive(context.Context, *keyState, *waiter) {}

func (r *racing) refused(k *keyState, _ *waiter, a attempt) {
	p := k.race()
	a = k.noted(a)
	p.outage = p.outage.note(a)
	p.contended, p.orphan, p.unmet = a.err == nil, a.orphan, a.unmet
}

func (r *racing) left(k *keyState, _ *waiter) {
	if p := k.met(); p != nil && k.first() == nil {
		calls.Nudge(p.poke)
	}
}

func (r *racing) unmet(k *keyState, _ *waiter) error {
	switch p := k.met(); {
	case p != nil && p.outage != nil:
		return p.outage.err
	case p != nil && p.unmet != nil:
		return p.unmet
	}
	return k.notAcquired()
}

func (r *racing) next(k *keyState, _ *hold) *waiter {
	w := k.first()
	if w == nil || !w.terms.plain() {
		return nil
	}
	k.remove(w)
	if k.first() == nil {
		r.settle(k)
	}
	return w
}

func (r *racing) release(ctx context.Context, d *hold, lastFence int64) (scripts.Released, error) {
	return r.backend.Release(ctx, d.key.name, d.owner, lastFence)
}

func (r *racing) giveUp(ctx context.Context, name, owner string) error {
	_, err := r.backend.CleanUp(ctx, name, owner)
	return err
}

func (r *racing) departs(k *keyState) {
	if p := k.met(); p != nil {
		p.before = p.seen()
	}
}

// released begins the turns of the other processes, if there are waiters here.
func (r *racing) released(k *keyState, said scripts.Released) {
	if !said.Ours || k.first() == nil || r.LocalHandover == 0 {
		return
	}
	p, others := k.race(), said.Listeners
	if p.before.Live {
		others--
	}
	p.turns.stepBack(others, p.before, time.Now(), time.Duration(r.trips.Load()))
	if p.before.Live {
		p.turns.published()
	}
	p.contended = p.contended || others > 0
}

func (r *racing) lost(*keyState, *hold) {}

func (r *racing) settle(k *keyState) {
	switch {
	case k.calls > 0: // the end of that call settles it
	case k.first() != nil && k.hold == nil:
		k.calls++
		r.calls.Background(func() { r.lead(k) })
	case k.first() == nil:
		if p := k.met(); p != nil {
			if p.sub != nil {
				p.sub.Close()
			}
			r.cleanUp(k.name, p.orphan)
			k.waiters.race = nil
		}
		if k.hold == nil {
			k.drop()
		}
	}
}

// lead is the loop that talks to Redis for the waiters of a key: subscribe, try again,
// sleep until a message or until the holder's lease must be over. It ends when the key is
// held here or has no waiters. There is at most one for a key in this process. The key
// goes to the waiter that is first when the answer comes, so a waiter may leave at any
// moment.
func (r *racing) lead(k *keyState) {
	k.Lock()
	p := k.race()
	k.Unlock()
	seen, remaining := p.seen(), r.Lease
	for resting := p.turns.active(); ; {
		notified := false
		switch {
		case p.contended && p.sub == nil:
			// So it cannot miss a release after its next attempt. Without a confirmation
			// (messages not allowed, connection lost) the timed attempts of rest must do.
			r.subscribe(p, k.name, min(r.calls.Timeout, probeWithoutMessages), func(now pubsub.State) bool { return now.Live })
		case resting:
			if notified = r.rest(k, p, seen, remaining); notified {
				r.observer.woken(k.name)
			}
		}
		asked, ok := r.wanted(k)
		if !ok {
			return
		}
		// A message from here on cuts the next sleep short.
		seen = p.seen()
		a := r.clear(p, k.name)
		if a.err == nil {
			a = r.attempt(r.calls.Context(), k, asked, r.numbers(asked))
			p.orphan = a.orphan
		}
		if r.deliver(k, p, a, asked) {
			return
		}
		remaining, resting = a.remaining, a.err == nil && a.hold == nil
		if !a.split {
			p.tries = max(p.tries-1, 0)
		} else {
			p.tries++
			remaining = 2*time.Duration(r.trips.Load()) + r.RetryDelay(p.tries)
		}
		if a.err != nil {
			// A new subscription ends the pause: Redis is back. Only the subscriptions' one
			// connection looks for it often, however many keys have waiters.
			r.subscribe(p, k.name, p.retry.Next(r.Lease), func(now pubsub.State) bool { return now.Epoch != seen.Epoch })
		}
	}
}

// wanted returns the terms of the first waiter. Without waiters, it ends the loop.
func (r *racing) wanted(k *keyState) (Terms, bool) {
	k.Lock()
	defer k.Unlock()
	if w := k.first(); w != nil {
		return w.terms, true
	}
	r.end(k)
	return Terms{}, false
}

// end ends the loop, with the key locked.
func (r *racing) end(k *keyState) {
	k.calls--
	r.settle(k)
}

// clear undoes what the last attempt may have left before the next one, so that this
// process has one call for the key under way, even while Redis is away.
func (r *racing) clear(p *race, name string) attempt {
	a := attempt{start: time.Now()}
	if p.orphan.owner == "" {
		return a
	}
	if a.err = r.undoOne(undone{name: name, owner: p.orphan.owner}); a.err == nil {
		p.orphan = orphan{}
	}
	return a
}

// deliver gives the result of an attempt to the waiters. It reports whether the loop has
// ended: the key is held here now, or has no waiters any more.
func (r *racing) deliver(k *keyState, p *race, a attempt, asked Terms) bool {
	k.Lock()
	defer k.Unlock()
	a = k.noted(a)
	p.outage = p.outage.note(a)
	if a.err != nil {
		k.endAll(func(w *waiter) error { return p.outage.overdue(w, a, *r.MaxOutage) })
		if k.first() != nil {
			return false
		}
		r.end(k)
		return true
	}
	p.retry, p.unmet = calls.Backoff{}, a.unmet
	if a.hold != nil && (k.first() == nil || k.first().terms != asked) {
		r.undo(a.hold)
		return false
	}
	lease := r.take(k, a)
	if lease == nil {
		p.contended = true
		return false
	}
	p.turns.reset()
	if n := p.passed(p.seen()); n > 0 {
		k.passed.Note(time.Duration(n << 10))
	}
	r.observer.acquired(&a.hold.section.first, holdfast.ByCall, k.first().since)
	k.serve(k.first(), result{lease: lease})
	r.end(k)
	return true
}

// probeWithoutMessages is how often a loop tries while its subscription is not live.
const probeWithoutMessages = time.Second

// subscribe subscribes to the releases of a key, unless the race has done so, and sleeps for
// at most d until the subscription is as wanted.
func (r *racing) subscribe(p *race, name string, d time.Duration, wanted func(pubsub.State) bool) {
	if p.sub == nil {
		p.sub = r.backend.Subscribe(name)
	}
	limit := time.NewTimer(d)
	defer limit.Stop()
	for !wanted(p.sub.State()) {
		select {
		case <-p.sub.Wake():
		case <-p.poke:
			return
		case <-limit.C:
			return
		}
	}
}

// rest sleeps until there is a reason for the next attempt: a release (or, after stepping
// back, one for each other process), a new subscription, the end of the holder's lease, or
// no more waiters. It reports whether a release was the reason.
func (r *racing) rest(k *keyState, p *race, before pubsub.State, remaining time.Duration) (notified bool) {
	began := time.Now()
	until, blind := began.Add(r.longest(remaining)), began.Add(probeWithoutMessages)
	passed, due := before.Messages, time.Time{}
	for {
		now, seen := time.Now(), p.seen()
		switch {
		case seen.Epoch != before.Epoch && !seed.DeafReconnect:
			p.turns.reset()
			return false
		case p.turns.active():
			if p.turns.mine(seen, now) {
				return true
			}
		case seen.Notified != before.Notified:
			if r.RetryDelay == nil {
				return true
			}
			if seen.Messages != passed || due.IsZero() {
				passed, due = seen.Messages, now.Add(r.holdBack(k, p, seen))
			}
			if !now.Before(due) {
				return true
			}
		}
		wake := until
		if !due.IsZero() && due.Before(wake) {
			wake = due
		}
		if !seen.Live && blind.Before(wake) && !seed.DeafReconnect {
			wake = blind
		}
		if next := p.turns.next(); !next.IsZero() && next.Before(wake) {
			wake = next
		}
		if !now.Before(wake) {
			p.turns.probed(now)
			return false
		}
		timer := time.NewTimer(wake.Sub(now))
		select {
		case <-p.sub.Wake():
		case <-timer.C:
		case <-p.poke:
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// holdBack is how long a race with split votes waits after a release. A race that has let as
// many releases pass as waits for its shard's keys usually do tries at once. Each one that it
// has let pass less costs a trip, up to a few: so those that came first go first, and they do
// not ask at the same time. As long as many do nevertheless, the delay is random as well.
func (r *racing) holdBack(k *keyState, p *race, seen pubsub.State) time.Duration {
	const most = 4
	behind := float64(k.passed.Load())/(1<<10) - float64(p.passed(seen))
	d := time.Duration(min(max(behind, 0), most) * float64(r.trips.Load()))
	if p.tries > 0 {
		d += r.RetryDelay(p.tries - 1)
	}
	return d
}

// longest is the longest sleep: until the holder's lease must be over, but at most one
// lease of ours.
func (r *racing) longest(remaining time.Duration) time.Duration {
	if remaining == scripts.NoExpiry || remaining > r.Lease {
		return r.Lease
	}
	return remaining + time.Millisecond // Redis rounds down
}

package racing

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/pubsub"
)

// How the loop of a race waits: for its subscription, and for a reason to try again.

// probeWithoutMessages is how often a loop tries while its subscription is not live.
const probeWithoutMessages = time.Second

// subscribe subscribes to the releases of a key, unless the race has done so, and sleeps for
// at most the given time until the subscription is as wanted.
func (r *race) subscribe(most time.Duration, wanted func(pubsub.State) bool) {
	if r.sub == nil {
		sub := r.backend.Subscribe(r.key.Name)
		r.key.Lock()
		r.sub = sub
		r.key.Unlock()
	}
	limit := time.NewTimer(most)
	defer limit.Stop()
	for !wanted(r.sub.State()) {
		select {
		case <-r.sub.Wake():
		case <-r.poke:
			if r.mustGoOn() {
				return
			}
		case <-limit.C:
			return
		}
	}
}

// mustGoOn reports whether the loop must not sleep on.
func (r *race) mustGoOn() bool {
	r.key.Lock()
	defer r.key.Unlock()
	return r.key.FirstWaiter() == nil || r.probe
}

// rest sleeps until there is a reason for the next attempt, and reports whether that was a
// message. The reasons:
//   - a release of another process; after stepping back, the last of those that it lets pass;
//     after a split vote, another release than the one for which all asked;
//   - r.probe: a release of ours after which it does not step back, or a lost hold;
//   - a new subscription;
//   - the moment until, or before that a probe by the clock, of turns or without messages;
//   - nobody waits any more.
func (r *race) rest(before pubsub.State, until time.Time, split bool) (notified bool) {
	k, blind := r.key, time.Now().Add(probeWithoutMessages)
	last, due := before.Messages, time.Time{}
	k.Lock()
	defer k.Unlock()
	for {
		now, seen := time.Now(), r.seen()
		news := seen.Notified - before.Notified
		if split { // late messages of that release would have the losers ask before the winner does again
			news = seen.Messages - before.Messages
		}
		switch {
		case k.FirstWaiter() == nil, r.probe:
			return false
		case seen.Epoch != before.Epoch:
			r.turns.reset()
			return false
		case r.turns.active():
			if r.turns.mine(seen, now) {
				return true
			}
		case news > r.turns.coming: // not only ours
			if r.delay == nil {
				return true
			}
			if seen.Messages != last || due.IsZero() {
				last, due = seen.Messages, now.Add(r.holdBack(seen))
			}
			if !now.Before(due) {
				return true
			}
		}
		wake := until
		if !due.IsZero() && due.Before(wake) {
			wake = due
		}
		if !seen.Live && blind.Before(wake) {
			wake = blind
		}
		if probe := r.turns.probe; !probe.IsZero() && probe.Before(wake) {
			wake = probe
		}
		if !now.Before(wake) {
			r.turns.probed(now)
			return false
		}
		k.Unlock()
		timer := time.NewTimer(wake.Sub(now))
		select {
		case <-r.sub.Wake():
		case <-timer.C:
		case <-r.poke:
		}
		timer.Stop()
		k.Lock()
	}
}

// holdBack is how long a race with split votes waits after a release. A race tries immediately if it
// has let as many releases pass as a wait for a key of this stripe usually does. It waits one round
// trip for each that is missing, up to a few: so those that came first go first, and they do not ask
// at the same time. As long as many do nevertheless, the delay is random as well.
func (r *race) holdBack(seen pubsub.State) time.Duration {
	const most = 4
	behind := float64(r.usual[r.key.Stripe()].Load())/(1<<10) - float64(r.releases(seen))
	pause := time.Duration(min(max(behind, 0), most) * float64(r.engine.RTT()))
	if n := r.splits.count; n > 0 {
		pause += r.delay(n - 1)
	}
	return pause
}

// longest is the longest sleep: until the holder's lease must be over, but at most one
// lease of ours.
func (r *race) longest(remaining time.Duration) time.Duration {
	if remaining == wire.NoExpiry || remaining > r.engine.Lease {
		return r.engine.Lease
	}
	return remaining + time.Millisecond // Redis rounds down
}

package racing

import (
	"time"

	"github.com/holdfast-go/holdfast/pubsub"
)

// maxIdle is how long turns may leave a key free after a release. The processes that have
// their turn may have given up, or may never have wanted the key.
const maxIdle = 50 * time.Millisecond

// turns makes a process that has had its tenure step back for the others. PUBLISH has told
// it how many others listen. It lets as many releases of others pass before it tries again,
// so the processes take turns without knowing of one another. Merely pausing for a moment
// starves some of them.
//
// This serves fairness only. The listeners may be idle or dead, and messages get lost. So
// the process also probes after a few round trips, and when its turn should have come by
// the usual time between releases. turns belongs to its race.
type turns struct {
	distance uint64        // releases of others to let pass; 0: not stepping back
	target   uint64        // number of others' messages at which it is our turn
	sent     uint64        // our messages: releases while subscribed
	coming   uint64        // those of our releases under way, which may have come or not
	began    time.Time     // of the current stepping back
	probe    time.Time     // next probe by the clock; zero: none
	gap      time.Duration // usual time between releases
	rtt      time.Duration // a round trip
	others   uint64        // others' messages counted so far
}

func (t *turns) active() bool { return t.distance > 0 }

// reset ends stepping back: every release is a reason to try.
func (t *turns) reset() { t.distance, t.probe = 0, time.Time{} }

// departs notes that a release begins of which our own subscription may receive the message at
// any time until departed.
func (t *turns) departs() { t.coming++ }

// departed notes the end of a release, which perhaps began before these turns.
func (t *turns) departed() { t.coming -= min(t.coming, 1) }

// published notes that our own subscription will receive a message of ours.
func (t *turns) published() { t.sent++ }

// stepBack begins to let others have their turns. seen is the state of the subscription
// before our release was published. Another release of ours meanwhile only brings the next probe
// nearer: otherwise a process with many holds would never probe.
func (t *turns) stepBack(others int, seen pubsub.State, now time.Time, rtt time.Duration) {
	if others <= 0 {
		t.reset()
		return
	}
	probe := now.Add(4 * rtt)
	if t.active() {
		if probe.Before(t.probe) {
			t.probe = probe
		}
		return
	}
	t.sent = min(t.sent, seen.Messages) // a message of ours may have been lost
	t.distance, t.others = uint64(others), t.foreign(seen)
	t.target = t.others + t.distance
	t.began, t.probe, t.rtt = now, probe, rtt
}

// foreign counts the messages of others among those seen.
func (t *turns) foreign(seen pubsub.State) uint64 { return seen.Messages - min(t.sent, seen.Messages) }

// mine reports whether it is our turn. It stays our turn until we get the key: if another
// process is faster, we try at the next release.
func (t *turns) mine(seen pubsub.State, now time.Time) bool {
	n := t.foreign(seen)
	if n -= min(n, t.coming); n < t.target {
		if n > t.others { // a release, and the last message unless a process takes the key
			t.others, t.probe = n, now.Add(max(4*t.rtt, min(t.gap*5/4, maxIdle)))
		}
		return false
	}
	if d := now.Sub(t.began) / time.Duration(t.distance); t.gap == 0 {
		t.gap = d
	} else {
		t.gap += (d - t.gap) / 4
	}
	t.reset()
	return true
}

// probed notes a probe by the clock. Counting goes on; the next probe comes when our turn
// should have come, and later ones at growing intervals.
func (t *turns) probed(now time.Time) {
	if !t.active() {
		return
	}
	wait := time.Duration(t.distance) * t.gap * 5 / 4
	t.probe = now.Add(max(wait, 2*now.Sub(t.began), time.Millisecond))
}

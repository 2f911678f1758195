package queueing

import (
	"strings"
	"time"
)

// Waiters that enter together are next to one another in Redis' queue and are served in
// one run. Waiters that enter one by one cost a call and a turn each. So when processes
// take turns, and this one has the key or several places, new waiters linger: a run ends
// its members one by one, and most of them come back. A lone waiter does not linger. No
// waiter lingers while the key stays in this process: those that come during a call to
// enter share the next call. A tenure of 0 turns runs and lingering off.

const (
	// linger is the longest wait: a round of some processes, each of which serves a run.
	linger = 2 * time.Millisecond

	// manyEnter is how many waiters must enter together to get long owners. Redis keeps a sorted
	// set of members up to 64 bytes as a list, which it searches from the start for each member
	// that comes or goes; one longer member makes it a skip list.
	manyEnter = 8
	longest   = 64
)

// lingering reports whether those outside linger now.
func (q *queue) lingering(now time.Time) bool {
	if q.engine.LocalHandover == 0 || !q.foreign || !q.key.Held() && len(q.tickets) < 2 {
		q.lingerFrom = time.Time{}
		return false
	}
	if q.lingerFrom.IsZero() {
		q.lingerFrom = now
	}
	return now.Sub(q.lingerFrom) < linger
}

// wanting reports whether a waiter has yet to enter.
func (q *queue) wanting() bool {
	for len(q.outside) > 0 && q.outside[0].w == nil {
		q.outside = q.outside[1:]
	}
	return len(q.outside) > 0
}

// takeOutside removes and returns the tickets that enter now, with their owners set.
func (q *queue) takeOutside() (list []*ticket) {
	n, most := 0, maxEnter
	if q.engine.LocalHandover == 0 {
		most = 1
	}
	for ; n < len(q.outside) && len(list) < most; n++ {
		if t := q.outside[n]; t.w != nil {
			list = append(list, t)
		}
	}
	if q.outside = q.outside[n:]; len(q.outside) == 0 {
		q.outside = nil
	}
	q.lingerFrom = time.Time{}
	for _, t := range list {
		if t.owner == "" && len(list) >= manyEnter {
			t.owner = longOwner(q.newSignedOwner())
		}
		q.register(t)
	}
	return list
}

// longOwner pads the number of an owner with zeros.
func longOwner(owner string) string {
	at := strings.IndexByte(owner, ':') + 1
	return owner[:at] + strings.Repeat("0", max(0, longest+1-len(owner))) + owner[at:]
}

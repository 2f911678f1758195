package engine

import (
	"strings"
	"time"
)

// Waiters that enter together stand next to one another in Redis' queue and are served in
// one run. Those that enter one by one cost a call and a turn each. So where processes take
// turns, and this one has the key or several places, new waiters wait a moment for others:
// a run that is being served ends its members one by one, and most come again. A waiter
// that is alone does not wait. Nor does anybody while the key stays in this process: those
// that come during a call to enter go out with the next. A tenure of 0 turns runs and this
// wait off.

const (
	// linger is the longest wait for company: a round of some processes, of which
	// each serves a run.
	linger = 2 * time.Millisecond

	// manyEnter is how many have to enter together to get long owners: Redis keeps a
	// sorted set of members up to 64 bytes as a row, which it searches from its start
	// for each that comes or goes, and one with a longer member as a tree.
	manyEnter = 8
	longest   = 64
)

// lingering says whether those outside wait for company.
func (q *queue) lingering(now time.Time) bool {
	if q.in.Handover == 0 || !q.shared || q.key.hold == nil && len(q.tickets) < 2 {
		q.lingerFrom = time.Time{}
		return false
	}
	if q.lingerFrom.IsZero() {
		q.lingerFrom = now
	}
	return now.Sub(q.lingerFrom) < linger
}

// wanting says whether somebody has to enter.
func (q *queue) wanting() bool {
	for len(q.outside) > 0 && q.outside[0].w == nil {
		q.outside = q.outside[1:]
	}
	return len(q.outside) > 0
}

// takeOutside takes out those that enter now, and gives them their owners.
func (q *queue) takeOutside() (list []*ticket) {
	n, most := 0, mostEnter
	if q.in.Handover == 0 {
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
			t.owner = longOwner(q.in.newOwner())
		}
		q.register(t)
	}
	return list
}

// longOwner is owner with zeros before its number, which stays its own.
func longOwner(owner string) string {
	at := strings.IndexByte(owner, ':') + 1
	return owner[:at] + strings.Repeat("0", max(0, longest+1-len(owner))) + owner[at:]
}

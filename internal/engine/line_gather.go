package engine

import (
	"strings"
	"time"
)

// Those who enter together follow one another in Redis' queue, and are served in
// one run; each by itself, they get a call and a turn for each. So where processes
// take turns and this one has the key or several places, those who want to enter
// wait a moment for company: a run that is being served gives back its members one
// by one, and most come again. Who is alone here waits for nobody, and nobody does
// where the key stays in this process: there, who comes while a call is under way
// is company enough. A tenure of 0 turns this off with the runs.

const (
	// gather is the longest wait for company: a round of some processes, of which
	// each serves a run.
	gather = 2 * time.Millisecond

	// manyEnter is how many have to enter together to get long owners: Redis keeps a
	// sorted set of members up to 64 bytes as a row, which it searches from its start
	// for each that comes or goes, and one with a longer member as a tree.
	manyEnter = 8
	longest   = 64
)

// gathering says whether those who want to enter wait for company, under mu.
func (h *Engine) gathering(q *queue, l *line, now time.Time) bool {
	if h.Handover == 0 || !l.shared || q.hold == nil && len(l.tickets) < 2 {
		l.gathered = time.Time{}
		return false
	}
	if l.gathered.IsZero() {
		l.gathered = now
	}
	return now.Sub(l.gathered) < gather
}

// departs is called when the key leaves this process, under mu. If nobody of it is
// queued, those who have gathered enter at once.
func (l *line) departs() {
	if l != nil && !l.gathered.IsZero() && len(l.tickets) < 2 {
		l.nudge()
	}
}

// arrives notes that a grant came by a message: others had their turn. One that
// comes with the answer to a call of this process comes before all others.
func (h *Engine) arrives(s *shard, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil && q.line() != nil {
		q.line().shared = true
	}
}

// wanting says whether somebody has to enter, under mu.
func (l *line) wanting() bool {
	for len(l.outside) > 0 && l.outside[0].w == nil {
		l.outside = l.outside[1:]
	}
	return len(l.outside) > 0
}

// next takes those out who enter now, and gives them their owners, under mu.
func (h *Engine) next(l *line) (batch []*ticket) {
	n, most := 0, h.coalesce()
	for ; n < len(l.outside) && len(batch) < most; n++ {
		if t := l.outside[n]; t.w != nil {
			batch = append(batch, t)
		}
	}
	if l.outside = l.outside[n:]; len(l.outside) == 0 {
		l.outside = nil
	}
	l.gathered = time.Time{}
	for _, t := range batch {
		if t.owner == "" && len(batch) >= manyEnter {
			t.owner = longOwner(h.newOwner())
		}
		h.register(l, t)
	}
	return batch
}

// longOwner is owner with zeros before its number, which stays its own.
func longOwner(owner string) string {
	at := strings.IndexByte(owner, ':') + 1
	return owner[:at] + strings.Repeat("0", max(0, longest+1-len(owner))) + owner[at:]
}

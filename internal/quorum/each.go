package quorum

import (
	"math/rand/v2"
	"time"
)

// end of one node's part of a call.
type nodeEnd struct {
	n   *node
	err error
}

// each runs f for every node beside the caller, and tells their ends as they come.
func (q *Quorum) each(nodes []*node, f func(*node) error) <-chan nodeEnd {
	came := make(chan nodeEnd, len(nodes))
	for _, n := range nodes {
		if !q.spawnShort(func() { came <- nodeEnd{n, f(n)} }) {
			came <- nodeEnd{n, errClosed}
		}
	}
	return came
}

// took notes how long a round took.
func (q *Quorum) took(d time.Duration) {
	old := q.trips.Load()
	if old == 0 {
		old = int64(d)
	}
	q.trips.Store(old + (int64(d)-old)/8)
}

// Scatter is a random delay before the next round. It grows with the rounds that
// have failed of late, as on an Ethernet: those who ask at once split the votes, and
// nobody gets a quorum. See the Redlock page, "Retry on failure". All its sizes are
// equally likely, the small ones too: who has failed often would else be asleep
// whenever the key is free, and those who had it last would take it again.
func (q *Quorum) Scatter(tries int) time.Duration {
	trip := time.Duration(q.trips.Load())
	window := min(trip<<rand.N(min(tries, 10)+1), max(250*time.Millisecond, min(16*trip, q.Longest/10)))
	return rand.N(max(window, 100*time.Microsecond))
}

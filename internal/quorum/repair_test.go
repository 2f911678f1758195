package quorum

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// If a node has no vote, thousands of holds may wait to be added there. A failed release
// does not wait with them.
func TestRepairerEndsBeforeItAdds(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
	x := r.client()
	r.warm(x)
	n := x.nodes[2]
	r.do(2, "FLUSHALL")
	n.guard.forget()
	requireNoVote(t, x.vote(2))
	for range 20_000 {
		h := x.newHold("other", fresh(ownO), lease)
		h.won = true
		n.repair(h)
	}
	until(t, func() bool { // all are waiting for the vote
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.kept && len(n.jobs) >= 20_000-jobsAtOnce
	})
	for range 3 {
		owner := fresh(ownX)
		r.do(2, "HSET", "k", owner, "1")
		h := x.newHold("k", owner, lease)
		h.parts[2].state = present
		x.finish(h, true, 0)
		n.endLater(h)
		until(t, func() bool { return r.holder(2) == "" })
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Greater(t, len(n.jobs), 10_000)
}

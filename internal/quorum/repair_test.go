package quorum

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/scripts"
)

// If a node has no vote, thousands of holds may wait to be added there. A failed release
// does not wait with them.
func TestRepairerEndsBeforeItAdds(t *testing.T) {
	needGuard(t)
	r, x := newWarmClient(t, 3)
	n := x.nodes[2]
	r.do(2, "FLUSHALL")
	n.guard.forget()
	requireNoVote(t, x.vote(2))
	for range 20_000 {
		h := x.newHold("other", fresh(ownO), lease)
		h.won = true
		n.repair(h)
	}
	locktest.Await(t, func() bool { // all are waiting for the vote
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
		locktest.Await(t, func() bool { return r.holder(2) == "" })
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Greater(t, len(n.jobs), 10_000)
}

// entries is a node's count for the hold of ownX.
func (r *harness) entries(node int) string {
	r.t.Helper()
	m := r.do(node, "HGET", "k", ownX)
	n, err := m.ToString()
	require.NoError(r.t, err)
	return n
}

// settledHold is a client with owner ownX, which has the key on all nodes, with no work
// left.
func settledHold(t *testing.T, nodes int, change ...func(*Config)) (*harness, *client, *hold) {
	t.Helper()
	r, x := newWarmClient(t, nodes, change...)
	x.has(ownX)
	h := x.Quorum.holds.get(ownX)
	for i, n := range x.nodes {
		locktest.Await(t, func() bool { return h.part(n).state >= present })
		x.idle(i)
	}
	return r, x, h
}

// A nested entry that no node has counted is not counted later, neither by a renewal nor by
// a repair.
func TestRefusedRecountLeavesNoTrace(t *testing.T) {
	r, x, _ := settledHold(t, 3)
	ours, err := x.Recount(locktest.Bounded(t), "k", ownX, 2)
	require.NoError(t, err)
	require.True(t, ours)
	for i := range r.servers {
		locktest.Await(t, func() bool { return r.entries(i) == "2" })
	}
	for i := range r.servers {
		r.do(i, "ACL", "SETUSER", "default", "-hset")
	}
	_, err = x.Recount(locktest.Bounded(t), "k", ownX, 3)
	require.Equal(t, scripts.Refused, scripts.OutcomeOf(err), "%v", err)
	for i := range r.servers {
		r.do(i, "ACL", "SETUSER", "default", "+hset")
	}
	r.do(2, "DEL", "k")
	x.renews(scripts.Renewed)
	locktest.Await(t, func() bool { return r.holder(2) == ownX })
	x.idle(2)
	require.Equal(t, []string{"2", "2", "2"}, []string{r.entries(0), r.entries(1), r.entries(2)})
}

// A node that missed a nested entry gets it with the next renewal.
func TestRenewalBringsEntries(t *testing.T) {
	r, x, _ := settledHold(t, 3)
	ours, err := x.Recount(locktest.Bounded(t), "k", ownX, 2)
	require.NoError(t, err)
	require.True(t, ours)
	locktest.Await(t, func() bool { return r.entries(2) == "2" })
	r.do(2, "HSET", "k", ownX, "1") // as if it had missed it
	x.renews(scripts.Renewed)
	locktest.Await(t, func() bool { return r.entries(2) == "2" })
}

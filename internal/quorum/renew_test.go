package quorum

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// renew renews the one hold of owner.
func (c *client) renew(key, owner string) (watchdog.Answer, error) {
	answers := make([]watchdog.Answer, 1)
	err := c.Renew(c.t.Context(), lease, []string{key}, []string{owner}, answers)
	return answers[0], err
}

// renews renews "k" of ownX, and requires the answer.
func (c *client) renews(want watchdog.Answer) {
	c.t.Helper()
	answer, err := c.renew("k", ownX)
	require.NoError(c.t, err)
	require.Equal(c.t, want, answer)
}

// fails renews "k" of ownX, and requires that no quorum answers.
func (c *client) fails() {
	c.t.Helper()
	for range 3 {
		answer, err := c.renew("k", ownX)
		require.Error(c.t, err)
		require.Equal(c.t, watchdog.Unanswered, answer)
	}
}

// onTwo is a client that holds "k" as ownX on the nodes 0 and 1, and is cut off from 2.
func (r *harness) onTwo() *client {
	r.t.Helper()
	x := r.warm()
	x.cutOff(2)
	x.has(ownX)
	require.Equal(r.t, []string{ownX, ownX, ""}, r.holders())
	return x
}

// A renewal needs a quorum, and a repair does not make one of a minority: without proof by the
// others there is none, and with proof it does not count.
func TestG1_RenewNeedsAQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x := r.onTwo()
		x.renews(watchdog.Renewed)

		r.do(1, "DEL", "k")
		x.fails() // one yes, one no and one away
		r.settles(ownX, "", "")
		r.client().takes(ownY) // on 1 and 2
		answer, _ := x.renew("k", ownX)
		require.NotEqual(t, watchdog.Renewed, answer)

		r.do(0, "DEL", "k")
		x.renews(watchdog.NotOurs) // no quorum can be left
	})
}

// A node that has the lock but never gave it, or may have forgotten others since, is no
// yes. Whether it has a vote or not, "not ours" is true.
func TestG1_RenewedCountsOnlyWithAVote(t *testing.T) {
	loses := func(r *harness, forget func(r *harness)) {
		x := r.onTwo()
		forget(r)
		require.Equal(r.t, ownX, r.holders()[1])
		x.fails()
		r.do(0, "DEL", "k")
		r.do(1, "DEL", "k")
		x.renews(watchdog.NotOurs)
	}
	t.Run("with another's data", func(t *testing.T) {
		r := onServers(t)
		follow(t, redistest.Start(t), r.servers[0]) // its second replica does not give it another replID
		require.NoError(t, r.client().DeclareNothingHeld(t.Context()))
		loses(r, func(r *harness) {
			follow(t, r.servers[1], r.servers[0])
			r.do(1, "REPLICAOF", "NO", "ONE")
		})
	})
	inBubbles(t, 3, map[string]bool{"without its marker": false, "marked by another": true}, func(t *testing.T, r *harness, marks bool) {
		loses(r, func(r *harness) {
			r.do(1, "DEL", marker)
			if marks {
				r.client().requireNoVote(1)
			}
		})
	})
}

// A renewal finds out by itself that a node has a new vote, which counts.
func TestRenewFindsTheNewVote(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x, _ := r.settled()
		r.do(2, "DEL", marker)
		other := r.client().nodes[2]
		reply := checked(t, other, wire.Mark, "")
		reply = checked(t, other, wire.Activate, reply.Incarnation)
		require.Zero(t, reply.Remaining)
		x.cutOff(1)
		_, _ = x.renew("k", ownX)
		settle()
		x.renews(watchdog.Renewed)
	})
}

// A node without a vote is not repaired.
func TestG1_NoRepairWithoutAVote(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x, _ := r.settled()
		r.do(2, "FLUSHALL")
		for range 2 { // one learns that the vote is void, one marks the node
			x.renews(watchdog.Renewed)
			settle()
		}
		require.NotEmpty(t, r.markers()[2])
		r.client().requireNoVote(2)
		x.renews(watchdog.Renewed)
		r.settles(ownX, ownX, "")
	})
}

// One renewal repairs a node, whether it says that it lacks the hold before the quorum has
// renewed it or after.
func TestRepairAfterARenewal(t *testing.T) {
	inBubbles(t, 3, map[string]int{"denied in time": 0, "denied late": 2}, func(t *testing.T, r *harness, last int) {
		x, h := r.settled()
		r.do(2, "DEL", "k")
		x.ways[last].HoldReplies(true)
		renewed := make(chan watchdog.Answer, 1)
		go func() {
			answer, _ := x.renew("k", ownX)
			renewed <- answer
		}()
		settle()
		require.Equal(t, last == 2, len(renewed) == 1)
		require.Equal(t, last == 2, h.part(x.nodes[2]).state == present, "as far as known")
		x.ways[last].HoldReplies(false)
		require.Equal(t, watchdog.Renewed, <-renewed)
		r.settles(ownX, ownX, ownX)
	})
}

// With WithClockFaults, a renewal by a mere quorum does not count: too few would be left
// after a jump. It repairs the nodes that lack the hold, and the next one counts. The hold
// is not lost as long as a quorum may have it.
func TestG1_F34_RenewalsWithClockFaults(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, r *harness) {
		x, _ := r.settled(func(c *Config) { c.ClockFaults = 1 })
		acquires := func(cmd []string) bool { return cmd[0] == "EVALSHA" && cmd[2] == "3" && cmd[3] == "k" }
		for _, i := range []int{0, 1} {
			r.do(i, "DEL", "k")
			x.ways[i].OnRequest(redistest.Always(acquires, redistest.Hold)) // repairs
		}
		answer, err := x.renew("k", ownX)
		require.Equal(t, watchdog.Unanswered, answer)
		require.ErrorContains(t, err, "3 of 5 nodes said yes, 4 are needed")
		r.settles("", "", ownX, ownX, ownX)
		for _, way := range x.ways {
			way.OnRequest(nil)
			way.Release()
		}
		r.settles(ownX, ownX, ownX, ownX, ownX)
		r.do(2, "DEL", "k")
		x.renews(watchdog.Renewed)
		r.settles(ownX, ownX, ownX, ownX, ownX)
		for i := range 3 {
			r.do(i, "DEL", "k")
		}
		x.renews(watchdog.NotOurs)
	})
}

// entries are the nodes' counts for the hold of ownX.
func (r *harness) entries() (all []string) {
	r.t.Helper()
	settle()
	for i := range r.servers {
		all = append(all, r.text(i, "HGET", "k", ownX))
	}
	return all
}

// notes has the nodes note the entries of ownX.
func (c *client) notes(e wire.Entries) {
	c.t.Helper()
	ours, err := c.SetEntries(c.t.Context(), "k", ownX, e)
	require.NoError(c.t, err)
	require.True(c.t, ours)
}

// nested is a settled client with a second entry.
func (r *harness) nested() *client {
	r.t.Helper()
	x, _ := r.settled()
	x.notes(wire.Entries{Count: 2})
	require.Equal(r.t, []string{"2", "2", "2"}, r.entries())
	return x
}

// A nested entry that no node has counted is not counted later, neither by a renewal nor by
// a repair.
func TestRefusedSetEntriesLeavesNoTrace(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x := r.nested()
		for _, way := range x.ways {
			way.OwnWords("NOPERM User default has no permissions to run the 'hset' command", true, mentions(ownX))
		}
		_, err := x.SetEntries(t.Context(), "k", ownX, wire.Entries{Count: 3})
		require.Equal(t, wire.Refused, wire.OutcomeOf(err), "%v", err)
		for _, way := range x.ways {
			way.OwnWords("", true, nil)
		}
		r.do(2, "DEL", "k")
		x.renews(watchdog.Renewed)
		require.Equal(t, []string{"2", "2", "2"}, r.entries())
	})
}

// A renewal that waits for the vote of a node does not bring it the count of before.
func TestLateRenewalBringsTheNewEntries(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x := r.nested()
		x.nodes[2].guard.forget()
		x.ways[2].OnRequest(redistest.Always(mentions(string(wire.Observe)), redistest.Hold))
		x.renews(watchdog.Renewed)
		x.notes(wire.Entries{Count: 3})
		require.Equal(t, []string{"3", "3", "3"}, r.entries())
		x.ways[2].OnRequest(nil)
		x.ways[2].Release()
		require.Equal(t, []string{"3", "3", "3"}, r.entries())
	})
}

// A node that missed a nested entry gets it with the next renewal.
func TestRenewalBringsEntries(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x := r.nested()
		r.do(2, "HSET", "k", ownX, "1")
		x.renews(watchdog.Renewed)
		require.Equal(t, []string{"2", "2", "2"}, r.entries())
	})
}

// A hold has its label on each node, also on one that gets it by a repair, whatever its entries.
func TestRepairBringsTheLabel(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x, own := r.warm(), "its own"
		a, err := x.Acquire(t.Context(), wire.AcquireRequest{Key: "k", Owner: ownX, Lease: lease, Label: &own})
		require.NoError(t, err)
		require.True(t, a.OK)
		settle()
		for n := 1; n <= 2; n++ {
			entries := fmt.Sprint(n, " its own")
			r.do(2, "DEL", "k")
			x.renews(watchdog.Renewed)
			require.Equal(t, []string{entries, entries, entries}, r.entries())
			x.notes(wire.Entries{Count: 2, Label: &own})
		}
	})
}

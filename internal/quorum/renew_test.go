package quorum

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// renew renews the one hold of owner.
func (c *client) renew(owner string, lease time.Duration) (scripts.Answer, error) {
	c.t.Helper()
	answers := make([]scripts.Answer, 1)
	err := c.Renew(locktest.Bounded(c.t), lease, []string{"k"}, []string{owner}, answers)
	return answers[0], err
}

// renews renews that of ownX, and requires the answer.
func (c *client) renews(want scripts.Answer) {
	c.t.Helper()
	answer, err := c.renew(ownX, lease)
	require.NoError(c.t, err)
	require.Equal(c.t, want, answer)
}

// x is a client that holds "k" as ownX on the nodes 0 and 1, and is cut off from 2.
func (r *harness) x(change ...func(*Config)) *client {
	r.t.Helper()
	c := r.client(change...)
	r.warm(c)
	for i := range r.servers {
		c.idle(i)
	}
	c.cutOff(2)
	c.has(ownX)
	require.Equal(r.t, []string{ownX, ownX, ""}, []string{r.holder(0), r.holder(1), r.holder(2)})
	return c
}

// A renewal needs a quorum, and a repair does not make one of a minority: without proof by the
// others there is none, and with proof it does not count.
func TestG1_RenewNeedsAQuorum(t *testing.T) {
	r := newActiveHarness(t, 3)
	x := r.x()
	x.renews(scripts.Renewed)

	r.do(1, "DEL", "k")
	for range 3 { // one yes, one no and one away
		answer, err := x.renew(ownX, lease)
		require.Equal(t, scripts.Unanswered, answer)
		require.Error(t, err)
	}
	x.idle(0)
	x.idle(1)
	require.Empty(t, r.holder(1))
	r.client().holds(ownY) // on 1 and 2
	answer, _ := x.renew(ownX, lease)
	require.NotEqual(t, scripts.Renewed, answer)

	r.do(0, "DEL", "k")
	x.renews(scripts.NotOurs) // no quorum can be left
}

// A node that has the lock but never gave it, or may have forgotten others since, is no
// yes.
func TestG1_RenewedCountsOnlyWithAVote(t *testing.T) {
	needGuard(t)
	for name, fault := range map[string]func(r *harness){
		"with another's data": func(r *harness) {
			follow(t, r.servers[1], r.servers[0])
			r.do(1, "REPLICAOF", "NO", "ONE")
		},
		"without its marker": func(r *harness) { r.do(1, "DEL", marker) },
		"marked by another": func(r *harness) {
			r.do(1, "DEL", marker)
			requireNoVote(t, r.client().vote(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, 3)
			follow(t, redistest.Start(t), r.servers[0]) // its second replica does not give it another replID
			require.NoError(t, r.client().Bootstrap(locktest.Bounded(t), true))
			x := r.x()
			fault(r)
			require.Equal(t, ownX, r.holder(1))
			for range 3 {
				answer, err := x.renew(ownX, lease)
				require.Equal(t, scripts.Unanswered, answer)
				require.Error(t, err)
			}
			// Whether it has a vote or not, "not ours" is true.
			r.do(1, "DEL", "k")
			r.do(0, "DEL", "k")
			x.renews(scripts.NotOurs)
		})
	}
}

// A renewal finds out by itself that a node has a new vote, which counts.
func TestRenewFindsTheNewVote(t *testing.T) {
	needGuard(t)
	r, x, _ := settledHold(t, 3)
	r.do(2, "DEL", marker)
	other := r.client().nodes[2]
	said := checked(t, other, scripts.Mark, "")
	said = checked(t, other, scripts.Activate, said.Epoch)
	require.Zero(t, said.Left)
	x.cutOff(1)
	locktest.Await(t, func() bool {
		answer, _ := x.renew(ownX, lease)
		return answer == scripts.Renewed
	})
}

// A node without a vote is not repaired.
func TestG1_NoRepairWithoutAVote(t *testing.T) {
	needGuard(t)
	r, x, _ := settledHold(t, 3)
	r.do(2, "FLUSHALL")
	locktest.Await(t, func() bool {
		x.renews(scripts.Renewed)
		return r.markerOf(2) != ""
	})
	requireNoVote(t, r.client().vote(2))
	x.renews(scripts.Renewed)
	require.Empty(t, r.holder(2))
}

// One renewal repairs a node, whether it says that it lacks the hold before the quorum has
// renewed it or after.
func TestRepairAfterARenewal(t *testing.T) {
	for name, late := range map[string]bool{"denied in time": false, "denied late": true} {
		t.Run(name, func(t *testing.T) {
			r, x, h := settledHold(t, 3)
			r.do(2, "DEL", "k")
			answer, last := make(chan struct{}), 0 // the node that answers last
			if late {
				last = 2
			}
			x.ways[last].OnReply(func(cmd []string) redistest.Verdict {
				if slices.Contains(cmd, ownX) {
					<-answer
				}
				return redistest.Pass
			})
			renewed := make(chan scripts.Answer, 1)
			go func() {
				said := make([]scripts.Answer, 1)
				_ = x.Renew(locktest.Bounded(t), lease, []string{"k"}, []string{ownX}, said)
				renewed <- said[0]
			}()
			if late {
				require.Equal(t, scripts.Renewed, <-renewed)
				require.Equal(t, present, h.part(x.nodes[2]).state, "as far as known")
				close(answer)
			} else {
				locktest.Await(t, func() bool { return h.part(x.nodes[2]).state < present })
				close(answer)
				require.Equal(t, scripts.Renewed, <-renewed)
			}
			locktest.Await(t, func() bool { return r.holder(2) == ownX })
		})
	}
}

// With WithClockFaults, a renewal by a mere quorum does not count: too few would be left
// after a jump. It repairs the nodes that lack the hold, and the next one counts. The hold
// is not lost as long as a quorum may have it.
func TestG1_F34_RenewalsWithClockFaults(t *testing.T) {
	r, x, _ := settledHold(t, 5, func(c *Config) { c.ClockFaults = 1 })
	for _, i := range []int{0, 1} {
		r.do(i, "DEL", "k")
		x.ways[i].OnRequest(func(cmd []string) redistest.Verdict {
			if cmd[0] == "EVALSHA" && cmd[2] == "3" && cmd[3] == "k" { // the repair's acquire
				return redistest.Hold
			}
			return redistest.Pass
		})
	}
	answer, err := x.renew(ownX, lease)
	require.Equal(t, scripts.Unanswered, answer)
	require.ErrorContains(t, err, "3 of 5 nodes said yes, 4 are needed")
	for _, i := range []int{0, 1} {
		x.ways[i].OnRequest(nil)
		x.ways[i].Release()
		locktest.Await(t, func() bool { return r.holder(i) == ownX })
		x.idle(i)
	}
	r.do(2, "DEL", "k")
	x.renews(scripts.Renewed)
	locktest.Await(t, func() bool { return r.holder(2) == ownX })
	x.idle(2)
	for i := range 3 {
		r.do(i, "DEL", "k")
	}
	x.renews(scripts.NotOurs)
}

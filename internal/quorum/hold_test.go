package quorum

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// A node gives unused fence numbers back only if it surely had the hold since they were
// made: else others may have had the lock, with numbers of their own.
func TestG10_SurelyThere(t *testing.T) {
	c := newActiveHarness(t, 3).client(func(c *Config) { c.Fencing = true })
	n := c.nodes[0]
	for name, then := range map[string]func(h *hold){
		"there":                          func(*hold) {},
		"there, but not asked once more": func(h *hold) { h.start(n); c.finish(h, true, 3); h.send(n); h.landed(n) },
		"asked once more":                func(h *hold) { h.start(n); h.send(n); h.replied(n, true); h.landed(n) },
		"one may still arrive":           func(h *hold) { h.parts[0].doubt++ },
		"denied since":                   func(h *hold) { h.lacks(n) },
		"perhaps ended":                  func(h *hold) { c.finish(h, true, 3); _ = n.ended(h, released{}, calls.ErrNoAnswer) },
	} {
		h := c.newHold("k", fresh(ownX), lease)
		for i := range h.parts {
			h.parts[i].state = present
		}
		c.writeBack(locktest.Bounded(t), h, 5, func(*node, error) {})
		then(h)
		c.finish(h, true, 3)
		how, need := h.toEnd(n)
		require.True(t, need, name)
		require.Equal(t, strings.HasPrefix(name, "there"), how.LastFence == 3, name)
	}
	for name, late := range map[string]func(h *hold){ // the node did not have it when the number was made
		"over":  func(h *hold) { h.parts[0].state = present; c.finish(h, true, 3) },
		"added": func(*hold) {},
	} {
		h := c.newHold("k", fresh(ownX), lease)
		late(h)
		c.writeBack(locktest.Bounded(t), h, 5, func(*node, error) {})
		h.parts[0].state = present
		c.finish(h, true, 3)
		how, _ := h.toEnd(n)
		require.Zero(t, how.LastFence, name)
	}
}

// A node that finds the tombstone of the owner does not say that another has the lock.
func TestF7_TombstoneIsNobodysHold(t *testing.T) {
	q := newActiveHarness(t, 1).client().Quorum
	h := q.newHold("k", ownX, lease)
	r := &round{q: q, hold: h, said: make([]scripts.NodeReply, 1), errs: []error{errPending}, pending: 1, decided: make(chan struct{})}
	r.answered(q.nodes[0], scripts.NodeReply{Acquired: scripts.Acquired{Gone: true}}, nil)
	<-r.decided
	require.Equal(t, errOver, r.errs[0])
	require.Zero(t, r.held)
}

// An acquire arrives after its tombstone, and its answer comes when the release has settled
// everything. It does not bring the hold back into doubt, which would never end.
func TestF7_LateAnswerOfWhatIsSettled(t *testing.T) {
	c := newActiveHarness(t, 1).client()
	n, h := c.nodes[0], c.newHold("k", ownX, lease)
	vote, err := n.voting(locktest.Bounded(t))
	require.NoError(t, err)
	require.True(t, h.send(n))
	require.Len(t, c.finish(h, true, 0), 1)
	require.False(t, h.start(n), "its end would forget that an acquire is flying")
	require.NoError(t, endOn(n, h))
	require.True(t, h.forgotten(n))
	said := make([]scripts.NodeReply, 1)
	ask := []scripts.Ask{{Key: h.key, Owner: h.owner, Lease: h.lease}}
	require.NoError(t, n.script.AcquireVoted(locktest.Bounded(t), vote, false, ask, said))
	require.True(t, said[0].Gone)
	for _, late := range []bool{said[0].OK, true} {
		h.replied(n, late)
		require.True(t, h.forgotten(n))
	}
}

// A repair that comes after the end of a hold does not replace the release among the jobs.
func TestRepairDoesNotReplaceARelease(t *testing.T) {
	r := newActiveHarness(t, 1)
	c := r.client()
	c.holds(ownX)
	h, n := c.Quorum.holds.get(c.owner), c.nodes[0]
	c.finish(h, true, 0)
	releasing, goOn := make(chan struct{}), make(chan struct{})
	c.ways[0].OnRequest(func(cmd []string) redistest.Verdict {
		if !slices.Contains(cmd, "k") {
			return redistest.Pass
		}
		c.ways[0].OnRequest(nil)
		close(releasing)
		<-goOn
		return redistest.Cut
	})
	n.endLater(h)
	<-releasing
	n.repair(h)
	close(goOn)
	locktest.Await(t, func() bool { return r.holder(0) == "" })
}

// A node that does not accept the end of a hold gets it again, however the hold ends.
func TestFailedEndIsRepeated(t *testing.T) {
	for name, end := range map[string]func(x *client, h *hold){
		"released": func(x *client, _ *hold) {
			said, err := x.Release(locktest.Bounded(t), "k", ownX, 0)
			require.NoError(t, err)
			require.True(t, said.Ours)
		},
		"lost":     func(x *client, _ *hold) { x.Lost("k", ownX) },
		"given up": func(x *client, h *hold) { x.giveUp(h, false) },
	} {
		t.Run(name, func(t *testing.T) {
			r, x, h := settledHold(t, 3)
			lost := make(chan struct{})
			x.ways[2].OnRequest(func(cmd []string) redistest.Verdict {
				if !slices.Contains(cmd, ownX) {
					return redistest.Pass
				}
				x.ways[2].OnRequest(nil)
				close(lost)
				return redistest.Cut
			})
			end(x, h)
			<-lost
			locktest.Await(t, func() bool { return r.holder(2) == "" })
		})
	}
}

// A release is no loss if the repairer got the last answer.
func TestReleaseThatTheRepairerHasDone(t *testing.T) {
	r := newActiveHarness(t, 3)
	c := r.client()
	c.holds(ownX)
	h := c.Quorum.holds.get(c.owner)
	for _, n := range c.finish(h, true, 0) {
		require.NoError(t, endOn(n, h))
	}
	said, err := c.Release(locktest.Bounded(t), "k", c.owner, 0)
	require.NoError(t, err)
	require.True(t, said.Ours)
}

// A node may have carried out a release that it did not answer. If the repeat finds nothing, that
// is no loss, as it is after a release that the node refused.
func TestUnansweredReleaseIsNoLoss(t *testing.T) {
	for _, c := range []struct {
		first error
		lost  int
	}{{calls.ErrNoAnswer, 0}, {refused(errors.New("NOPERM")), 1}} {
		n := New(nil, Config{}).newTestNode()
		h := n.q.newHold("k", ownX, lease)
		h.parts[0] = part{state: present}
		require.ErrorIs(t, n.ended(h, released{}, c.first), c.first)
		require.NoError(t, n.ended(h, released{}, nil))
		require.Equal(t, []int{1 - c.lost, c.lost}, []int{h.released, h.notOurs})
	}
}

// Calls for a short lease give nodes less time. One without an answer makes no node away.
func TestShortLeasesMakeNoNodeAway(t *testing.T) {
	_, c := newWarmClient(t, 1)
	n := c.nodes[0]
	ask := func(lease time.Duration) error {
		_, err := call(c.bounded(lease), n, func(ctx context.Context) (struct{}, error) {
			<-ctx.Done()
			return struct{}{}, ctx.Err()
		})
		return err
	}
	for range silences {
		require.Equal(t, calls.ErrNoAnswer, ask(100*time.Millisecond))
	}
	require.False(t, n.away())
}

// A repairer asks a node without a vote at long intervals: that may last for an hour, for
// many leases.
func TestRepairerIsPatientWithoutAVote(t *testing.T) {
	r := newActiveHarness(t, 2)
	c := r.client()
	var tries [2]atomic.Int32
	enough := make(chan struct{})
	for i, why := range []error{noVote{time.Hour}, errTaken} {
		n := c.nodes[i]
		n.asks.call = func(context.Context, bool, []item[scripts.NodeReply]) ([]scripts.NodeReply, error) {
			if tries[i].Add(1) == 100 {
				close(enough)
			}
			return nil, why
		}
		h := c.newHold("k", ownX, lease)
		h.won = true
		n.repair(h)
	}
	<-enough
	require.Less(t, tries[0].Load(), int32(50))
}

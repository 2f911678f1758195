package quorum

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A node gives unused fence numbers back only if it definitely had the hold since they were
// made: else others may have had the lock, with numbers of their own.
func TestG10_DefinitelyThere(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.client(fencing)
		n := c.nodes[0]
		number := func(h *hold) { (&round{q: c.Quorum, hold: h, errs: make([]error, 3)}).writeBack(t.Context(), 5) }
		there := func(h *hold) { h.parts = []part{{state: present}, {state: present}, {state: present}} }
		over := func(h *hold) { c.markOver(h, true, 3) }
		for name, one := range map[string]struct {
			steps []func(h *hold)
			gives bool
		}{
			"there":           {[]func(*hold){there, number}, true},
			"not asked again": {[]func(*hold){there, number, func(h *hold) { h.markFlying(n); over(h); h.markSent(n); h.landed(n) }}, true},
			"asked once more": {[]func(*hold){there, number, func(h *hold) { h.markFlying(n); h.markSent(n); h.replied(n, true); h.landed(n) }}, false},
			"may yet arrive":  {[]func(*hold){there, number, func(h *hold) { h.parts[0].doubt++ }}, false},
			"denied since":    {[]func(*hold){there, number, func(h *hold) { h.lacks(n) }}, false},
			"perhaps ended":   {[]func(*hold){there, number, over, func(h *hold) { _ = n.noteEnd(h, endReply{}, calls.ErrNoAnswer) }}, false},
			"added later":     {[]func(*hold){number, there}, false},
			"over":            {[]func(*hold){there, over, number, there}, false},
		} {
			h := c.newHold(asking("k", fresh(ownX), lease))
			for _, step := range one.steps {
				step(h)
			}
			over(h)
			how, need := h.toEnd(n)
			require.True(t, need, name)
			require.Equal(t, one.gives, how.LastFence == 3, name)
			require.Equal(t, !one.gives, how.LastFence == 0, name)
		}
	})
}

// A node that finds the tombstone of the owner does not say that another has the lock.
func TestF7_TombstoneIsNobodysHold(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *harness) {
		q := r.client().Quorum
		h := q.newHold(asking("k", ownX, lease))
		a := &round{q: q, hold: h, replies: make([]wire.NodeReply, 1), errs: []error{errPending}, pending: 1, decided: make(chan struct{})}
		a.onReply(q.nodes[0], wire.NodeReply{AcquireReply: wire.AcquireReply{Gone: true}}, nil)
		<-a.decided
		require.Equal(t, errOver, a.errs[0])
		require.Zero(t, a.held)
	})
}

// An acquire arrives after its tombstone, and its answer comes when the release has settled
// everything. It does not bring the hold back into doubt, which would never end.
func TestF7_LateAnswerOfWhatIsSettled(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *harness) {
		c := r.client()
		n, h := c.nodes[0], c.newHold(asking("k", ownX, lease))
		vote, err := n.voting(t.Context())
		require.NoError(t, err)
		require.True(t, h.markSent(n))
		require.Len(t, c.markOver(h, true, 0), 1)
		require.False(t, h.markFlying(n), "its end would forget that an acquire is flying")
		require.NoError(t, (<-beginEnd(n, h)).err)
		require.True(t, h.forgotten(n))
		replies := make([]wire.NodeReply, 1)
		ask := []wire.AcquireRequest{{Key: h.Key, Owner: h.Owner, Lease: h.Lease}}
		require.NoError(t, n.redis.AcquireVoted(t.Context(), vote, false, ask, replies))
		require.True(t, replies[0].Gone)
		for _, late := range []bool{replies[0].OK, true} {
			h.replied(n, late)
			require.True(t, h.forgotten(n))
		}
	})
}

// A repair that comes after the end of a hold does not replace the release among the jobs.
func TestRepairDoesNotReplaceARelease(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *harness) {
		c, h := r.settled()
		n := c.nodes[0]
		c.markOver(h, true, 0)
		held := redistest.Once(c.ways[0].OnRequest, mentions("k"), redistest.Hold)
		n.endLater(h)
		<-held
		r.settles(ownX)
		n.repair(h)
		c.ways[0].Cut()
		r.settles("")
	})
}

// A node that does not accept the end of a hold gets it again, however the hold ends.
func TestFailedEndIsRepeated(t *testing.T) {
	inBubbles(t, 3, map[string]func(x *client, h *hold){
		"released": func(x *client, _ *hold) {
			x.releases(ownX, 0)
		},
		"lost":     func(x *client, _ *hold) { x.Abandoned(ownX) },
		"given up": func(x *client, h *hold) { x.giveUp(h, false) },
	}, func(t *testing.T, r *harness, end func(x *client, h *hold)) {
		x, h := r.settled()
		cut := redistest.Once(x.ways[2].OnRequest, mentions(ownX), redistest.Cut)
		end(x, h)
		<-cut
		r.settles("", "", "")
	})
}

// A release is no loss if the repairer got the last answer.
func TestReleaseThatTheRepairerHasDone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c, h := r.settled()
		for _, n := range c.markOver(h, true, 0) {
			require.NoError(t, (<-beginEnd(n, h)).err)
		}
		c.releases(ownX, 0)
	})
}

// A node may have carried out a release that it did not answer. If the repeat finds nothing, that
// is no loss, as it is after a release that the node refused.
func TestUnansweredReleaseIsNoLoss(t *testing.T) {
	for _, c := range []struct {
		first error
		lost  int
	}{{calls.ErrNoAnswer, 0}, {refused(errors.New("NOPERM")), 1}} {
		n := New(nil, Config{}).newTestNode()
		h := n.q.newHold(asking("k", ownX, lease))
		h.parts[0] = part{state: present}
		require.ErrorIs(t, n.noteEnd(h, endReply{}, c.first), c.first)
		require.NoError(t, n.noteEnd(h, endReply{}, nil))
		require.Equal(t, []int{1 - c.lost, c.lost}, []int{h.released, h.notOurs})
	}
}

// Calls for a short lease give nodes less time. One without an answer makes no node away.
func TestShortLeasesMakeNoNodeAway(t *testing.T) {
	onNode(t, func(t *testing.T, _ *harness, c *client, n *node) {
		for range awayAfter {
			_, err := call(n, 100*time.Millisecond, func(ctx context.Context) (struct{}, error) {
				<-ctx.Done()
				return struct{}{}, ctx.Err()
			})
			require.Equal(t, calls.ErrNoAnswer, err)
		}
		require.False(t, n.away())
	})
}

// A repairer asks a node without a vote at long intervals: that may last for an hour, for
// many leases.
func TestRepairerIsPatientWithoutAVote(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, r *harness) {
		c := r.client()
		var tries [2]atomic.Int32
		for i, why := range []error{ownError{noVote{time.Hour}, wire.Unavailable}, errTaken} {
			n := c.nodes[i]
			n.asks.call = func(context.Context, bool, []item[wire.NodeReply]) ([]wire.NodeReply, error) {
				tries[i].Add(1)
				return nil, why
			}
			h := c.newHold(asking("k", ownX, lease))
			h.won = true
			n.repair(h)
		}
		time.Sleep(2 * time.Second)
		require.Less(t, tries[0].Load(), int32(50))
		require.GreaterOrEqual(t, tries[1].Load(), int32(100))
	})
}

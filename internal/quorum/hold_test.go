package quorum

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// Fence numbers that were not used are given back only where a hold surely was when
// it ended: elsewhere others may have had the lock, and have numbers of their own.
func TestG10_SurelyThere(t *testing.T) {
	q := newRipeRig(t, 1).client().Quorum
	for name, c := range map[string]struct {
		part part
		over bool
		sure bool
	}{
		"there":                            {part{asked: true, there: true, made: true}, false, true},
		"there, after its number was made": {part{asked: true, there: true}, false, false},
		"asked for":                        {part{asked: true}, false, false},
		"there, and asked for once more":   {part{asked: true, there: true, made: true, flying: 1}, false, false},
		"there, and one may still arrive":  {part{asked: true, there: true, made: true, doubt: 1}, false, false},
		"there when it was over":           {part{asked: true, there: true, made: true}, true, false},
	} {
		h := q.newHold("k", ownX, lease)
		h.parts[0], h.over = c.part, c.over
		require.Len(t, q.end(h), 1, name)
		require.Equal(t, c.sure, h.parts[0].sure, name)
		q.end(h)
		require.Equal(t, c.sure, h.parts[0].sure, "%s: its end does not change it", name)
	}
}

// A node that found the tombstone of the owner does not say that another has the lock.
func TestF7_TombstoneIsNobodysHold(t *testing.T) {
	q := newRipeRig(t, 1).client().Quorum
	h := q.newHold("k", ownX, lease)
	r := &round{q: q, hold: h, said: make([]scripts.NodeReply, 1), errs: []error{errPending}, pending: 1, decided: make(chan struct{})}
	r.answered(q.nodes[0], scripts.NodeReply{Acquired: scripts.Acquired{Gone: true}}, nil)
	<-r.decided
	require.Equal(t, errOver, r.errs[0])
	require.Zero(t, r.held)
}

// An acquire that arrives after its tombstone, and whose answer comes when the release
// has settled all, does not bring the hold back into doubt: it would never count as released there.
func TestF7_LateAnswerOfWhatIsSettled(t *testing.T) {
	c := newRipeRig(t, 1).client()
	n, h := c.nodes[0], c.newHold("k", ownX, lease)
	vote, err := n.voting(bounded(t))
	require.NoError(t, err)
	require.True(t, h.send(n))
	require.Len(t, c.end(h), 1)
	require.NoError(t, n.release(h, 0))
	require.True(t, h.forgotten(n))
	said := make([]scripts.NodeReply, 1)
	ask := []scripts.Ask{{Key: h.key, Owner: h.owner, Lease: h.lease}}
	require.NoError(t, n.script.AcquireVoted(bounded(t), vote, false, ask, said))
	require.True(t, said[0].Gone)
	for _, late := range []bool{said[0].OK, true} {
		h.answered(n, late)
		require.True(t, h.forgotten(n))
	}
}

// A repair that comes when the hold is over takes nothing back: the release is what is
// still to be done.
func TestRepairDoesNotReplaceARelease(t *testing.T) {
	r := newRipeRig(t, 1)
	c := r.client()
	c.holds(ownX)
	h, n := c.Quorum.holds.get(c.owner), c.nodes[0]
	c.end(h)
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
	n.later(h, (*node).releaseLater)
	<-releasing
	n.repair(h)
	close(goOn)
	until(t, func() bool { return r.holder(0) == "" })
}

// That the last answer came to the repairer makes no loss of a release.
func TestReleaseThatTheRepairerHasDone(t *testing.T) {
	r := newRipeRig(t, 3)
	c := r.client()
	c.holds(ownX)
	h := c.Quorum.holds.get(c.owner)
	for _, n := range c.end(h) {
		require.NoError(t, n.release(h, 0))
	}
	said, err := c.Release(bounded(t), "k", c.owner, 0)
	require.NoError(t, err)
	require.True(t, said.Ours)
}

// Calls for a short lease leave nodes less time than others: that they are not
// answered makes no node away.
func TestShortLeasesMakeNoNodeAway(t *testing.T) {
	r := newRipeRig(t, 1)
	c := r.client()
	r.warm(c)
	n := c.nodes[0]
	ask := func(lease time.Duration) error {
		_, err := call(c.bounded(lease), n, func(ctx context.Context) (struct{}, error) {
			<-ctx.Done()
			return struct{}{}, ctx.Err()
		})
		return err
	}
	for range silences {
		require.Equal(t, errSilent, ask(100*time.Millisecond))
	}
	require.False(t, n.away())
}

// A node without a vote is not asked again and again to take what it has missed: that may
// last for an hour, and there may be many leases.
func TestRepairerIsPatientWithoutAVote(t *testing.T) {
	r := newRipeRig(t, 2)
	c := r.client()
	var tries [2]atomic.Int32
	enough := make(chan struct{})
	for i, why := range []error{noVote{time.Hour}, errTaken} {
		c.nodes[i].later(c.newHold("k", ownX, lease), func(*node, *hold) error {
			if tries[i].Add(1) == 100 {
				close(enough)
			}
			return why
		})
	}
	<-enough
	require.Less(t, tries[0].Load(), int32(50))
}

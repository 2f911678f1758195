package quorum

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// Releases go out in batches as well, and each gets its own answer: released, nothing to
// release, refused.
func TestBatch_Releases(t *testing.T) {
	r := newActiveHarness(t, 1)
	c := r.client()
	n := c.nodes[0]
	_, err := n.voting(locktest.Bounded(t))
	require.NoError(t, err)
	for _, key := range []string{"held", "wrong"} {
		require.True(t, (<-askFor(n, key, ownX, lease, false)).OK)
	}
	r.do(0, "SET", "wrong", "a string")
	var calls atomic.Int64
	c.ways[0].OnRequest(func([]string) redistest.Verdict {
		calls.Add(1)
		return redistest.Pass
	})
	first, place := n.ends.Join(struct{}{}, ending{c.newHold("other", ownX, lease), func(*node, released, error) {}}, false)
	require.Zero(t, place)
	holds, errs := map[string]*hold{}, map[string]chan error{}
	for _, key := range []string{"held", "free", "wrong"} {
		h, came := c.newHold(key, ownX, lease), make(chan error, 1)
		h.parts[0] = part{state: present}
		c.finish(h, true, 0)
		holds[key], errs[key] = h, came
		n.end(h, func(_ *node, _ released, err error) { came <- err })
	}
	require.Equal(t, 4, n.ends.Size(first))
	hurried := c.newHold("held", ownY, 9*c.NodeTimeout)
	hurried.parts[0] = part{state: asked}
	c.finish(hurried, true, 0)
	require.NoError(t, endOn(n, hurried))
	require.Equal(t, 1, hurried.notOurs, "it does not wait for the others")

	before := calls.Load()
	n.ends.send(first)
	require.NoError(t, <-errs["held"])
	require.NoError(t, <-errs["free"])
	require.Equal(t, scripts.Refused, scripts.OutcomeOf(<-errs["wrong"]))
	require.LessOrEqual(t, calls.Load(), before+2, "one, and the text of the script")
	for key, want := range map[string][2]int{"held": {1, 0}, "free": {0, 1}, "wrong": {0, 0}} {
		require.Equal(t, want, [2]int{holds[key].released, holds[key].notOurs}, key)
	}
}

// A release waits for the answer to an acquire under way: it has to know whether a
// tombstone is needed.
func TestBatch_ReleaseAwaitsTheAnswer(t *testing.T) {
	r, c := newWarmClient(t, 1)
	n := c.nodes[0]
	arrived, goOn := make(chan struct{}), make(chan struct{})
	c.ways[0].OnReply(func(cmd []string) redistest.Verdict {
		if slices.Contains(cmd, "k") {
			c.ways[0].OnReply(nil)
			close(arrived)
			<-goOn
		}
		return redistest.Pass
	})
	h := c.newHold("k", ownX, lease)
	came := beginAsk(n, h, false)
	<-arrived
	c.finish(h, true, 0)
	ended := beginEnd(n, h)
	close(goOn)
	require.True(t, (<-came).OK)
	require.NoError(t, <-ended)
	require.Equal(t, 1, h.released)
	require.Empty(t, r.holder(0))
	require.False(t, locktest.Exists(t, r.servers[0], gone), "a tombstone")
}

// Nor does a release overtake an acquire that has yet to be sent. That acquire then is not
// sent, so the node has not answered.
func TestBatch_ReleaseBeforeTheAcquireIsSent(t *testing.T) {
	c := newActiveHarness(t, 1).client()
	n := c.nodes[0]
	h, came := c.newHold("k", ownX, lease), make(chan error, 1)
	require.True(t, h.start(n))
	g, place := n.asks.Join(false, item[scripts.NodeReply]{h, func(_ *node, _ scripts.NodeReply, err error) { came <- err }}, false)
	require.Zero(t, place)
	require.Len(t, c.finish(h, true, 0), 1)
	ended := beginEnd(n, h)
	n.answered.Store(0)
	n.asks.send(g)
	require.Equal(t, error(errOver), <-came)
	require.False(t, n.fresh())
	require.NoError(t, <-ended)
	require.True(t, h.forgotten(n))
	require.Zero(t, h.notOurs, "no node has denied it")
}

// A node that has nothing of a hold is not asked to end it, nor is one that is away, for which
// nothing waits.
func TestBatch_ReleaseThatIsNotSent(t *testing.T) {
	c := newActiveHarness(t, 1).client()
	n := c.nodes[0]
	calls := 0
	n.ends.call = func(context.Context, struct{}, []ending) ([]released, error) { calls++; return nil, nil }
	ended := make(chan error, 1)
	end := func(p part) error {
		h := c.newHold("k", ownX, lease)
		h.parts[0] = p
		n.end(h, func(_ *node, _ released, err error) { ended <- err })
		return <-ended
	}
	require.NoError(t, end(part{}))
	n.gone.Store(true)
	require.Equal(t, error(errAway), end(part{state: present}))
	require.Zero(t, calls)
}

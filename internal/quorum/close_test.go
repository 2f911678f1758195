package quorum

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// closing begins to close the client, and returns when no new short work begins.
func (c *client) closing() (closed <-chan struct{}) {
	c.t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.Close()
	}()
	locktest.Await(c.t, func() bool {
		c.mu.RLock()
		defer c.mu.RUnlock()
		return c.Quorum.closing
	})
	return over
}

// A node that is a little late still gets the last release, even in a batch that another caller
// is about to send.
func TestCloseLetsASharedReleaseArrive(t *testing.T) {
	r, c := newWarmClient(t, 3)
	c.holds(ownX)
	n, h := c.nodes[2], c.Quorum.holds.get(c.owner)
	for _, n := range c.nodes {
		locktest.Await(t, func() bool { return h.part(n) == part{state: present} })
	}
	other := c.newHold("other", ownY, lease)
	other.parts[2] = part{state: present}
	g, place := n.ends.Join(struct{}{}, ending{other, func(*node, released, error) {}}, false)
	require.Zero(t, place)
	send := sync.OnceFunc(func() { n.ends.send(g) })
	defer send()
	said, err := c.Release(locktest.Bounded(t), "k", c.owner, 0)
	require.NoError(t, err)
	require.True(t, said.Ours)
	closed := c.closing()
	select {
	case <-c.bounds.Base.Done(): // cut off
	case <-time.After(100 * time.Millisecond): // it waits, which is no event
	}
	require.True(t, c.spawn(send))
	<-closed
	require.Empty(t, r.holder(2), "an orphan")
}

// So does a node that has to undo a round that has just failed, and has not answered that
// round yet.
func TestCloseLetsAFailedRoundBeUndone(t *testing.T) {
	r := newActiveHarness(t, 3)
	y := r.client()
	y.cutOff(0)
	y.holds(ownY)
	x := r.client()
	r.warm(x)
	asked, answer := make(chan struct{}), make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	x.ways[0].OnReply(func(cmd []string) redistest.Verdict {
		if slices.Contains(cmd, ownX) {
			ask()
			<-answer
		}
		return redistest.Pass
	})
	for _, way := range x.ways[1:] { // a round that is over asks no other node
		way.OnReply(func(cmd []string) redistest.Verdict {
			if slices.Contains(cmd, ownX) {
				<-asked
			}
			return redistest.Pass
		})
	}
	a, err := x.get(ownX)
	require.NoError(t, err)
	require.False(t, a.OK)
	locktest.Await(t, func() bool { return r.holder(0) == ownX })
	closed := x.closing()
	select {
	case <-x.bounds.Base.Done(): // cut off
	case <-time.After(100 * time.Millisecond): // it waits, which is no event
	}
	close(answer)
	<-closed
	require.Empty(t, r.holder(0), "an orphan")
}

// The work that Close waits for does not grow during the wait. A round that fails then is
// undone as far as there is time, and a repairer's release goes out.
func TestNothingShortIsBegunWhileClosing(t *testing.T) {
	r := newActiveHarness(t, 3)
	c := r.client()
	n, h, kept := c.nodes[0], c.newHold("k", ownX, lease), c.newHold("kept", ownX, lease)
	for _, h := range []*hold{h, kept} {
		require.True(t, (<-beginAsk(n, h, false)).OK)
	}
	goOn := make(chan struct{})
	require.True(t, c.spawnShort(func() { <-goOn }))
	closed := c.closing()
	defer func() {
		close(goOn)
		<-closed
	}()
	require.False(t, c.spawnShort(func() {}))
	c.giveUp(h, false)
	locktest.Await(t, func() bool { return r.holder(0) == "" })
	c.finish(kept, true, 0)
	n.endLater(kept)
	locktest.Await(t, func() bool { return kept.forgotten(n) })
}

// Calls to a closed quorum get its error for each node. It can be closed again.
func TestClosedNodesAreNotWaitedFor(t *testing.T) {
	_, c := newWarmClient(t, 3)
	c.Close()
	asked := 0
	for a := range each(locktest.Bounded(t), c.Quorum, c.nodes, func(*node) (struct{}, error) { return struct{}{}, nil }) {
		require.Equal(t, answer[struct{}]{n: a.n, err: errClosed}, a)
		asked++
	}
	require.Equal(t, len(c.nodes), asked)
	_, err := c.Inspect("k")
	require.Equal(t, scripts.Refused, scripts.OutcomeOf(err), "%v", err)
	for i, n := range c.Nodes(locktest.Bounded(t)) {
		require.Equal(t, NodeStatus{Node: c.nodes[i].name, Err: errClosed}, n)
	}
	n, ended := c.nodes[0], make(chan error, 1)
	require.Equal(t, error(errClosed), (<-askFor(n, "k", ownX, lease, false)).err)
	n.ends.add(struct{}{}, ending{c.newHold("k", ownX, lease), func(_ *node, _ released, err error) { ended <- err }})
	require.Equal(t, error(errClosed), <-ended)
}

package quorum

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// closing begins to close the client, and returns when no new short work begins.
func (c *client) closing() (closed <-chan struct{}) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.Close()
	}()
	settle()
	return over
}

// A node that is a little late still gets the last release, even in a batch that another caller
// is about to send.
func TestCloseLetsASharedReleaseArrive(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c, _ := r.settled()
		n := c.nodes[2]
		ends, _ := first(t, &n.ends, struct{}{}, c.holdOn(n, "other", ownY, part{state: present}))
		send := sync.OnceFunc(func() { n.ends.send(ends) })
		defer send()
		c.releases(ownX, 0)
		closed := c.closing()
		require.True(t, c.work.TryGo(send))
		<-closed
		r.settles("", "", "")
	})
}

// So does a node that has to undo a round that has just failed, and has not answered that
// round yet.
func TestCloseLetsAFailedRoundBeUndone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		y := r.client()
		y.cutOff(0)
		y.has(ownY)
		x := r.warm()
		x.ways[0].OnReply(redistest.Always(mentions(ownX), redistest.Hold))
		a, err := x.get(ownX)
		require.NoError(t, err)
		require.False(t, a.OK)
		r.settles(ownX, ownY, ownY)
		closed := x.closing()
		x.ways[0].OnReply(nil)
		x.ways[0].Release()
		<-closed
		r.settles("", ownY, ownY)
	})
}

// The work that Close waits for does not grow during the wait. A round that fails then is
// undone as far as there is time, and a repairer's release goes out.
func TestNothingShortIsBegunWhileClosing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.client()
		n, h, kept := c.nodes[0], c.newHold(asking("k", ownX, lease)), c.newHold(asking("kept", ownX, lease))
		for _, h := range []*hold{h, kept} {
			require.True(t, (<-beginAsk(n, h, false)).reply.OK)
		}
		goOn := make(chan struct{})
		require.True(t, c.short.TryGo(func() { <-goOn }))
		closed := c.closing()
		require.False(t, c.short.TryGo(func() {}))
		c.giveUp(h, false)
		r.settles("", "", "")
		c.markOver(kept, true, 0)
		n.endLater(kept)
		settle()
		require.True(t, kept.forgotten(n))
		close(goOn)
		<-closed
	})
}

// While Close waits, a node without a marker is not marked: the others cannot be asked for which deployment
// theirs are.
func TestG1_NoNodeIsMarkedWhileClosing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.client(func(c *Config) { c.MaxLease = 2 * lease })
		goOn := make(chan struct{})
		require.True(t, c.short.TryGo(func() { <-goOn }))
		closed := c.closing()
		defer func() { close(goOn); <-closed }()
		r.do(0, "DEL", marker)
		_, err := c.nodes[0].mark(t.Context())
		require.ErrorIs(t, err, calls.ErrNoAnswer)
		require.Empty(t, r.markers()[0])
	})
}

// Answers that have come by the end of the context count.
func TestAnswersOfTheLastMomentCount(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.client()
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answers := 0
			for range each(ctx, &c.short, c.nodes, func(*node) (struct{}, error) { return struct{}{}, nil }) {
				settle()
				cancel()
				answers++
			}
			require.Equal(t, len(c.nodes), answers)
		}
	})
}

// Silent nodes are given up together: three take no longer than one.
func TestCloseWaitsForAllNodesAtOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.warm()
		live := c.Subscribe("k")
		locktest.Await(t, func() bool { return live.State().Live })
		settle()
		for _, way := range c.ways {
			way.HoldRequests(true)
		}
		began := time.Now()
		c.Close()
		require.Less(t, time.Since(began), 2*time.Second)
	})
}

// Calls to a closed quorum get its error for each node. It can be closed again.
func TestClosedNodesAreNotWaitedFor(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.warm()
		c.Close()
		asked := 0
		for a := range each(t.Context(), &c.short, c.nodes, func(*node) (struct{}, error) { return struct{}{}, nil }) {
			require.Equal(t, answer[struct{}]{n: a.n, err: errClosed}, a)
			asked++
		}
		require.Equal(t, len(c.nodes), asked)
		_, err := c.Inspect(t.Context(), "k")
		require.Equal(t, wire.Refused, wire.OutcomeOf(err), "%v", err)
		for i, n := range c.Nodes(t.Context()) {
			require.Equal(t, holdfast.NodeStatus{Node: c.nodes[i].name, Err: errClosed}, n)
		}
		n := c.nodes[0]
		require.Equal(t, error(errClosed), (<-beginAsk(n, c.newHold(asking("k", ownX, lease)), false)).err)
		done, ended := answered[endReply]()
		n.ends.add(struct{}{}, ending{c.newHold(asking("k", ownX, lease)), done}, false)
		require.Equal(t, error(errClosed), (<-ended).err)
	})
}

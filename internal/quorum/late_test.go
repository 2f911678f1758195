package quorum

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

const gone = "holdfast_gone:{k}:" + ownX

// straggler holds back the first acquire of ownX to node 2, and signals its arrival at the
// proxy.
func (c *client) straggler() <-chan struct{} {
	var once sync.Once
	underWay := make(chan struct{})
	c.ways[2].OnRequest(func(cmd []string) redistest.Verdict {
		v := redistest.Pass
		if cmd[0] == "EVALSHA" && slices.Contains(cmd, ownX) {
			once.Do(func() { v = redistest.Hold; close(underWay) })
		}
		return v
	})
	return underWay
}

// hangUp ends the client's connections to a node. Calls already sent still arrive.
func (c *client) hangUp(node int) {
	c.t.Helper()
	for len(c.conns[node]) > 0 {
		conn := <-c.conns[node]
		conn.Close()
	}
}

// requireTooLate lets the straggler arrive after it was undone, and requires that it takes
// nothing.
func (r *harness) requireTooLate(c *client) {
	r.t.Helper()
	until(r.t, func() bool {
		m := r.do(2, "EXISTS", gone)
		exists, err := m.AsInt64()
		return err == nil && exists == 1
	})
	require.Empty(r.t, r.holder(2))
	c.idle(2)
	before := r.evalshas(2)
	c.ways[2].Release()
	until(r.t, func() bool { return r.evalshas(2) > before })
	require.Empty(r.t, r.holder(2), "an orphan")
}

// evalshas counts the EVALSHA calls of a node.
func (r *harness) evalshas(node int) int {
	r.t.Helper()
	m := r.do(node, "INFO", "commandstats")
	text, err := m.ToString()
	require.NoError(r.t, err)
	_, after, _ := strings.Cut(text, "cmdstat_evalsha:calls=")
	n := 0
	for _, digit := range after {
		if digit < '0' || digit > '9' {
			break
		}
		n = 10*n + int(digit-'0')
	}
	return n
}

// The acquire of the round to a node that it was won without, or that of a repair.
func TestF7_AcquireArrivesAfterTheRelease(t *testing.T) {
	for name, repair := range map[string]bool{"of the round": false, "of a repair": true} {
		t.Run(name, func(t *testing.T) {
			r := newActiveHarness(t, 3)
			x := r.client()
			r.warm(x)
			x.idle(2)
			if repair {
				x.cutOff(2)
			}
			underWay := x.straggler()
			a, err := x.get(ownX)
			require.NoError(t, err)
			require.True(t, a.OK)
			x.reach(2)
			<-underWay
			x.hangUp(2)
			until(t, func() bool { return r.holder(2) == ownX }) // it was sent once more
			said, err := x.Release(bounded(t), "k", ownX, 0)
			require.NoError(t, err)
			require.True(t, said.Ours)
			r.requireTooLate(x)
		})
	}
}

func TestF7_AcquireArrivesAfterItsRoundHasFailed(t *testing.T) {
	r := newActiveHarness(t, 3)
	y := r.client()
	y.cutOff(2)
	y.holds(ownY)
	x := r.client()
	r.warm(x)
	underWay := x.straggler()
	goOn := make(chan struct{})
	for _, way := range x.ways[:2] {
		way.OnRequest(func(cmd []string) redistest.Verdict {
			if slices.Contains(cmd, ownX) {
				<-goOn
			}
			return redistest.Pass
		})
	}
	failed := make(chan scripts.Acquired)
	go func() {
		a, _ := x.get(ownX)
		failed <- a
	}()
	<-underWay
	x.hangUp(2) // before its undoing is sent, which would arrive behind it
	until(t, func() bool { return x.nodes[2].unanswered() })
	close(goOn)
	require.False(t, (<-failed).OK)
	r.requireTooLate(x)
}

// unanswered says whether the last call had no answer.
func (n *node) unanswered() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent > 0
}

// A node carries out a release and its answer is lost. The repeat finds nothing, which is
// no loss.
func TestUnansweredReleaseIsNoLoss(t *testing.T) {
	r := newActiveHarness(t, 3)
	x := r.client()
	r.warm(x)
	x.holds(ownX)
	for i := range x.nodes {
		until(t, func() bool { return r.holder(i) == x.owner })
	}
	_, err := x.Release(bounded(t), "k", x.owner, 0) // now the nodes know the script
	require.NoError(t, err)
	for i := range x.nodes {
		until(t, func() bool { return r.holder(i) == "" })
	}
	x.holds(ownY)
	n, h := x.nodes[0], x.Quorum.holds.get(x.owner)
	until(t, func() bool { return r.holder(0) == x.owner && h.part(n).doubt == 0 })
	swallowed := x.ways[0].SwallowReply(1, func(cmd []string) bool { return slices.Contains(cmd, x.owner) })
	x.finish(h, true, 0)
	require.Error(t, endOn(n, h))
	<-swallowed
	require.Empty(t, r.holder(0))
	until(t, func() bool { return endOn(n, h) == nil }) // else it dials
	require.Equal(t, 1, h.released)
	require.Zero(t, h.notOurs)
}

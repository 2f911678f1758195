package quorum

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

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

package quorum

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
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

// requireTooLate lets the straggler arrive after it was undone, and requires that it takes
// nothing.
func (r *harness) requireTooLate(c *client) {
	r.t.Helper()
	locktest.Await(r.t, func() bool { return locktest.Exists(r.t, r.servers[2], gone) })
	require.Empty(r.t, r.holder(2))
	c.idle(2)
	evalshas := func() int { return locktest.Stat(r.t, r.servers[2], "commandstats", "cmdstat_evalsha:calls=") }
	before := evalshas()
	c.ways[2].Release()
	locktest.Await(r.t, func() bool { return evalshas() > before })
	require.Empty(r.t, r.holder(2), "an orphan")
}

// The acquire of the round to a node that it was won without, or that of a repair.
func TestF7_AcquireArrivesAfterTheRelease(t *testing.T) {
	for name, repair := range map[string]bool{"of the round": false, "of a repair": true} {
		t.Run(name, func(t *testing.T) {
			r, x := newWarmClient(t, 3)
			x.idle(2)
			if repair {
				x.cutOff(2)
			}
			underWay := x.straggler()
			x.has(ownX)
			x.reach(2)
			<-underWay
			x.sockets[2].Drop()                                           // calls already sent still arrive
			locktest.Await(t, func() bool { return r.holder(2) == ownX }) // it was sent once more
			said, err := x.Release(locktest.Bounded(t), "k", ownX, 0)
			require.NoError(t, err)
			require.True(t, said.Ours)
			r.requireTooLate(x)
		})
	}
}

package quorum

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const gone = "holdfast_gone:{k}:" + ownX

// What arrives after the release takes nothing: the acquire to a node that the round was won
// without, or that of a repair.
func TestF7_AcquireArrivesAfterTheRelease(t *testing.T) {
	for name, repair := range map[string]bool{"of the round": false, "of a repair": true} {
		t.Run(name, func(t *testing.T) {
			r, x := newWarmClient(t, 3)
			x.idle(2)
			if repair {
				x.cutOff(2)
			}
			underWay := make(chan struct{})
			x.ways[2].OnRequest(func(cmd []string) redistest.Verdict {
				if cmd[0] != "EVALSHA" || !slices.Contains(cmd, ownX) {
					return redistest.Pass
				}
				x.ways[2].OnRequest(nil)
				close(underWay)
				return redistest.Hold
			})
			x.has(ownX)
			x.reach(2)
			<-underWay
			x.sockets[2].Drop() // calls already sent still arrive

			locktest.Await(t, func() bool { return r.holder(2) == ownX }) // it was sent once more
			said, err := x.Release(locktest.Bounded(t), "k", ownX, 0)
			require.NoError(t, err)
			require.True(t, said.Ours)
			locktest.Await(t, func() bool { return locktest.Exists(t, r.servers[2], gone) })
			require.Empty(t, r.holder(2))
			x.idle(2)
			evalshas := func() int { return locktest.Stat(t, r.servers[2], "commandstats", "cmdstat_evalsha:calls=") }
			before := evalshas()
			x.ways[2].Release()
			locktest.Await(t, func() bool { return evalshas() > before })
			require.Empty(t, r.holder(2), "an orphan")
		})
	}
}

package quorum

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// If a node has no vote, thousands of holds may wait to be added there. A failed release
// does not wait with them.
func TestRepairerEndsBeforeItAdds(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x := r.warm()
		n := x.nodes[2]
		r.do(2, "FLUSHALL")
		n.guard.forget()
		x.requireNoVote(2)
		for range 20_000 {
			h := x.newHold(asking("other", fresh(ownO), lease))
			h.won = true
			n.repair(h)
		}
		settle() // all are waiting for the vote
		for range 3 {
			owner := fresh(ownX)
			r.do(2, "HSET", "k", owner, "1")
			h := x.holdOn(n, "k", owner, part{state: present})
			x.markOver(h, true, 0)
			n.endLater(h)
			time.Sleep(10 * time.Millisecond)
			require.Empty(t, r.holders()[2])
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		require.Greater(t, len(n.jobs), 10_000)
	})
}

// A node that was not asked for longer than a lease has nothing of a hold any more, so its end is
// no job, unless an acquire may still arrive.
func TestRepairerEndsWhatMayStillArrive(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *harness) {
		c := r.client()
		c.cutOff(0)
		time.Sleep(2 * lease)
		for doubt := range uint8(2) {
			n := c.nodes[0]
			h := c.holdOn(n, "k", ownX, part{state: present, doubt: doubt})
			c.markOver(h, true, 0)
			n.endLater(h)
			ends, _ := n.unended()
			require.Len(t, ends, int(doubt))
		}
	})
}

// What arrives after the release takes nothing: the acquire to a node that the round was won
// without, or that of a repair.
func TestF7_AcquireArrivesAfterTheRelease(t *testing.T) {
	inBubbles(t, 3, map[string]bool{"of the round": false, "of a repair": true}, func(t *testing.T, r *harness, repair bool) {
		x := r.warm()
		if repair {
			x.cutOff(2)
		}
		redistest.Once(x.ways[2].OnRequest, mentions(ownX), redistest.Hold)
		x.has(ownX)
		x.ways[2].Refuse(false)
		r.settles(ownX, ownX, "")
		x.sockets[2].Drop()         // calls already sent still arrive
		r.settles(ownX, ownX, ownX) // it was sent once more
		x.releases(ownX, 0)
		r.settles("", "", "")
		require.True(t, locktest.Exists(t, r.servers[2], gone))
		evalshas := func() int { return locktest.Stat(t, r.servers[2], "commandstats", "cmdstat_evalsha:calls=") }
		before := evalshas()
		x.ways[2].Release()
		r.settles("", "", "")
		require.Greater(t, evalshas(), before)
	})
}

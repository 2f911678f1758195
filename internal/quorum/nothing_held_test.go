package quorum

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func TestNothingHeld_Again(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		marked, c := r.markers(), r.client()
		require.NoError(t, c.DeclareNothingHeld(t.Context()))
		require.NoError(t, r.client().DeclareNothingHeld(t.Context()))
		require.Equal(t, marked, r.markers())
		c.has(ownA)
	})
}

// Each of several concurrent calls returns when the nodes vote, or fails because some vote
// already. All nodes vote in the end.
func TestNothingHeld_AtOnce(t *testing.T) {
	for range 5 {
		onFresh(t, 3, func(t *testing.T, r *harness) {
			var all sync.WaitGroup
			for range 4 {
				c := r.client()
				all.Go(func() {
					if err := c.DeclareNothingHeld(t.Context()); err != nil {
						assert.Equal(t, errInUse, err)
					}
				})
			}
			all.Wait()
			for i := range r.servers {
				require.NoError(t, r.client().vote(i))
			}
		})
	}
}

// A node that was restarted or has lost its marker gets no vote while others vote.
func TestNothingHeld_GivesARestartedNodeNoVote(t *testing.T) {
	for node := range 3 {
		inBubble(t, 3, func(t *testing.T, r *harness) {
			x := r.client()
			x.cutOff((node + 1) % 3)
			x.takes(ownX)
			r.servers[node].Restart()
			y := r.client()
			y.requireNoVote(node)
			require.Equal(t, errInUse, y.DeclareNothingHeld(t.Context()), "others vote")
			y.requireNoVote(node)
			y.refused(ownY)
		})
	}
}

// A node that forgets between the two steps may already have had a vote, and given it.
func TestNothingHeld_DoesNotHealAFlushBetweenItsSteps(t *testing.T) {
	for name, forget := range map[string]func(*sim.Server){"flushed": (*sim.Server).Forget, "restarted": (*sim.Server).Restart} {
		for _, look := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", looked at ", look), func(t *testing.T) {
				onFresh(t, 3, func(t *testing.T, r *harness) {
					first, done := r.client(), make(chan error)
					first.ways[0].OnRequest(redistest.Always(mentions("activate"), redistest.Hold))
					go func() { done <- first.DeclareNothingHeld(t.Context()) }()
					settle()
					forget(r.sim(0))
					if look {
						r.client().requireNoVote(0)
					}
					first.ways[0].OnRequest(nil)
					first.ways[0].Release()
					require.Error(t, <-done)
					r.client().requireNoVote(0)
					first.requireNoVote(0)
				})
			})
		}
	}
}

// An activation that is late or repeated does not heal what the node forgot after the
// first.
func TestNothingHeld_Repeated(t *testing.T) {
	onFresh(t, 3, func(t *testing.T, r *harness) {
		c := r.client()
		lost := c.ways[0].SwallowReply(1, mentions("activate"))
		require.NoError(t, c.DeclareNothingHeld(t.Context()))
		<-lost
		reply := checked(t, c.nodes[0], wire.Observe, "")
		require.Zero(t, reply.Remaining)
		r.do(0, "FLUSHALL")
		r.client().requireNoVote(0)
		again := checked(t, c.nodes[0], wire.Activate, reply.Incarnation)
		require.Positive(t, again.Remaining)
		r.client().requireNoVote(0)
	})
}

// A client that did not finish makes the nodes wait as if it had not begun.
func TestNothingHeld_WithNodesAway(t *testing.T) {
	onFresh(t, 3, func(t *testing.T, r *harness) {
		for node := range 3 {
			c := r.client()
			c.cutOff(node)
			err := c.DeclareNothingHeld(t.Context())
			require.ErrorContains(t, err, "2 of 3 nodes said yes, 3 are needed")
			require.ErrorContains(t, err, c.nodes[node].name)
			for i := range r.servers {
				r.client().requireNoVote(i)
			}
		}
		require.NoError(t, r.client().DeclareNothingHeld(t.Context()))
	})
}

func TestNothingHeld_WithoutTheGuard(t *testing.T) {
	onFresh(t, 3, func(t *testing.T, r *harness) {
		require.NoError(t, r.client(func(c *Config) { c.Unguarded = true }).DeclareNothingHeld(t.Context()))
		require.Equal(t, []string{"", "", ""}, r.markers())
	})
}

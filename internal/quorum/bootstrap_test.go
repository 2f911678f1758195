package quorum

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

func (r *harness) markers() (all []string) {
	r.t.Helper()
	for i := range r.servers {
		all = append(all, r.markerOf(i))
	}
	return all
}

func TestBootstrapAgain(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
	marked := r.markers()
	c := r.client()
	for _, nothingHeld := range []bool{true, false} {
		require.NoError(t, c.Bootstrap(locktest.Bounded(t), nothingHeld))
		require.NoError(t, r.client().Bootstrap(locktest.Bounded(t), nothingHeld))
		require.Equal(t, marked, r.markers())
	}
	c.holds(ownA)
}

// Each of several concurrent calls returns when the nodes vote, or fails because some vote
// already. All nodes vote in the end.
func TestBootstrapAtOnce(t *testing.T) {
	needGuard(t)
	for range 5 {
		r := newHarness(t, 3)
		var all sync.WaitGroup
		for range 4 {
			c := r.client()
			all.Go(func() {
				if err := c.Bootstrap(context.Background(), true); err != nil {
					assert.Equal(t, errInUse, err)
				}
			})
		}
		all.Wait()
		for i := range r.servers {
			require.NoError(t, r.client().vote(i))
		}
	}
}

// A program that calls Bootstrap at every start gives no vote to a node that was restarted
// or has lost its marker.
func TestBootstrapGivesARestartedNodeNoVote(t *testing.T) {
	needGuard(t)
	for node := range 3 {
		r := newActiveHarness(t, 3)
		x := r.client()
		x.cutOff((node + 1) % 3)
		x.holds(ownX)
		r.servers[node].Restart()
		y := r.client()
		require.NoError(t, y.Bootstrap(locktest.Bounded(t), false))
		requireNoVote(t, y.vote(node))
		require.Equal(t, errInUse, y.Bootstrap(locktest.Bounded(t), true), "others vote")
		requireNoVote(t, y.vote(node))
		y.refused(ownY)
	}
}

// Nor to nodes that kept their data, with the markers of their earlier boot.
func TestBootstrapOfNodesThatKeptTheirData(t *testing.T) {
	needGuard(t)
	r := newHarness(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	require.NoError(t, r.client().Bootstrap(locktest.Bounded(t), true))
	for _, s := range r.servers {
		s.Restart()
	}
	c := r.client()
	require.NoError(t, c.Bootstrap(locktest.Bounded(t), false))
	for i := range r.servers {
		requireNoVote(t, c.vote(i))
	}
}

// A node that forgets between the two steps may already have had a vote, and given it.
func TestBootstrapDoesNotHealAFlushBetweenItsSteps(t *testing.T) {
	needGuard(t)
	for name, forget := range map[string]func(*harness){
		"flushed":   func(r *harness) { r.do(0, "FLUSHALL") },
		"restarted": func(r *harness) { r.servers[0].Restart() },
	} {
		for _, look := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", looked at ", look), func(t *testing.T) {
				r := newHarness(t, 3)
				first := r.client()
				reached, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
				reach := sync.OnceFunc(func() { close(reached); <-goOn })
				first.ways[0].OnRequest(func(cmd []string) redistest.Verdict {
					if slices.Contains(cmd, "activate") {
						reach()
					}
					return redistest.Pass
				})
				go func() { done <- first.Bootstrap(context.Background(), true) }()
				<-reached
				forget(r)
				if look {
					requireNoVote(t, r.client().vote(0))
				}
				close(goOn)
				require.Error(t, <-done)
				requireNoVote(t, r.client().vote(0))
				requireNoVote(t, first.vote(0))
			})
		}
	}
}

// An activation that is late or repeated does not heal what the node forgot after the
// first.
func TestBootstrapRepeated(t *testing.T) {
	needGuard(t)
	r := newHarness(t, 3)
	c := r.client()
	lost := c.ways[0].SwallowReply(1, func(cmd []string) bool { return slices.Contains(cmd, "activate") })
	require.NoError(t, c.Bootstrap(locktest.Bounded(t), true))
	<-lost
	said := checked(t, c.nodes[0], scripts.Observe, "")
	require.Zero(t, said.Left)
	r.do(0, "FLUSHALL")
	requireNoVote(t, r.client().vote(0))
	again := checked(t, c.nodes[0], scripts.Activate, said.Epoch)
	require.Positive(t, again.Left)
	requireNoVote(t, r.client().vote(0))
}

// A client that did not finish makes the nodes wait as if it had not begun. Without NothingHeld, a
// minority may be away.
func TestBootstrapWithNodesAway(t *testing.T) {
	needGuard(t)
	r := newHarness(t, 3)
	for node := range 3 {
		c := r.client()
		c.cutOff(node)
		err := c.Bootstrap(locktest.Bounded(t), true)
		require.ErrorContains(t, err, "2 of 3 nodes said yes, 3 are needed")
		require.ErrorContains(t, err, c.nodes[node].name)
		require.NoError(t, c.Bootstrap(locktest.Bounded(t), false))
		c = r.client()
		c.cutOff(node, (node+1)%3)
		require.ErrorContains(t, c.Bootstrap(locktest.Bounded(t), false), "1 of 3 nodes said yes, 2 are needed")
		for i := range r.servers {
			requireNoVote(t, r.client().vote(i))
		}
	}
	require.NoError(t, r.client().Bootstrap(locktest.Bounded(t), true))
}

func TestBootstrapWithoutTheGuard(t *testing.T) {
	r := newHarness(t, 3)
	for _, nothingHeld := range []bool{true, false} {
		require.NoError(t, r.client(func(c *Config) { c.Unguarded = true }).Bootstrap(locktest.Bounded(t), nothingHeld))
	}
	require.Equal(t, []string{"", "", ""}, r.markers())
}

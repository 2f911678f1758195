package quorum

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

func (r *rig) markers() (all []string) {
	r.t.Helper()
	for i := range r.servers {
		all = append(all, r.markerOf(i))
	}
	return all
}

func TestBootstrapOfFreshNodes(t *testing.T) {
	r := newRig(t, 3)
	first := r.client()
	require.NoError(t, first.Bootstrap(bounded(t)))
	for _, text := range r.markers() {
		require.Contains(t, text, " 0 100000")
	}
	first.holds("a")
}

// Those who had found the nodes fresh before are not kept waiting.
func TestBootstrapIsSeenByItsCaller(t *testing.T) {
	r := newRig(t, 3)
	c := r.client()
	for i := range r.servers {
		requireNoVote(t, c.vote(i))
	}
	for i := range r.servers {
		r.do(i, "FLUSHALL")
	}
	require.NoError(t, c.Bootstrap(bounded(t)))
	a, err := c.get("b")
	require.NoError(t, err)
	require.True(t, a.OK)
}

func TestBootstrapAgain(t *testing.T) {
	r := newRipeRig(t, 3)
	marked := r.markers()
	c := r.client()
	for range 2 {
		require.NoError(t, c.Bootstrap(bounded(t)))
		require.NoError(t, r.client().Bootstrap(bounded(t)))
		require.Equal(t, marked, r.markers())
	}
	c.holds("a")
}

// Of several at once one goes on, and all return when it is done: none disturbs it.
func TestBootstrapAtOnce(t *testing.T) {
	for range 5 {
		r := newRig(t, 3)
		var all sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			c := r.client()
			all.Go(func() {
				errs[i] = c.Bootstrap(context.Background())
				for end := time.Now().Add(20 * time.Second); errs[i] == nil; { // others are waited for no longer than a second
					_, err := c.Acquire(context.Background(), "k"+strconv.Itoa(i), "a"+rand.Text(), lease, 10)
					if err == nil || time.Now().After(end) {
						errs[i] = err
						return
					}
				}
			})
		}
		all.Wait()
		for i := range errs {
			require.NoError(t, errs[i])
		}
	}
}

// Who calls it whenever a program starts gives no vote to a node that was restarted,
// or whose marker was lost, whichever of them it is.
func TestBootstrapGivesARestartedNodeNoVote(t *testing.T) {
	for node := range 3 {
		r := newRipeRig(t, 3)
		x := r.client()
		x.cutOff((node + 1) % 3)
		x.holds("x")
		r.server(node).Restart()
		y := r.client()
		require.NoError(t, y.Bootstrap(bounded(t)))
		requireNoVote(t, y.vote(node))
		require.NoError(t, y.Bootstrap(bounded(t)))
		requireNoVote(t, y.vote(node))
		y.refused("y")
	}
}

// Nor to one that kept its data, with the marker of its earlier boot.
func TestBootstrapOfNodesThatKeptTheirData(t *testing.T) {
	r := newRig(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	require.NoError(t, r.client().Bootstrap(bounded(t)))
	for _, s := range r.servers {
		s.Restart()
	}
	c := r.client()
	require.NoError(t, c.Bootstrap(bounded(t)))
	for i := range r.servers {
		requireNoVote(t, c.vote(i))
	}
}

// A node that forgets between the two steps may have had a vote already, and have
// given it.
func TestBootstrapDoesNotHealAFlushBetweenItsSteps(t *testing.T) {
	flush := func(r *rig) { r.do(0, "FLUSHALL") }
	restart := func(r *rig) { r.server(0).Restart() }
	look := func(c *client) { requireNoVote(c.t, c.vote(0)) }
	begin := func(c *client) {
		said, _, err := c.nodes[0].lookNow(bounded(c.t), scripts.Begin, epoch(), "")
		require.NoError(c.t, err)
		require.True(c.t, said.Marked)
	}
	for name, c := range map[string]struct {
		forget func(*rig)
		then   func(*client)
	}{
		"flushed":                   {flush, func(*client) {}},
		"flushed, and looked at":    {flush, look},
		"flushed, and begun anew":   {flush, begin},
		"restarted":                 {restart, func(*client) {}},
		"restarted, and looked at":  {restart, look},
		"restarted, and begun anew": {restart, begin},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3)
			first := r.client()
			var once sync.Once
			reached, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
			first.ways[0].OnRequest(func(cmd []string) redistest.Verdict {
				if slices.Contains(cmd, "ripen") {
					once.Do(func() { close(reached); <-goOn })
				}
				return redistest.Pass
			})
			go func() { done <- first.Bootstrap(context.Background()) }()
			<-reached
			c.forget(r)
			c.then(r.client())
			close(goOn)
			if err := <-done; !strings.HasPrefix(name, "restarted") { // which cuts the connection
				require.NoError(t, err)
			}
			requireNoVote(t, r.client().vote(0))
			requireNoVote(t, first.vote(0))
		})
	}
}

// A client that did not get to the end has the nodes wait as if it had not begun.
func TestBootstrapWithANodeAway(t *testing.T) {
	for node := range 3 {
		r := newRig(t, 3)
		c := r.client()
		c.cutOff(node)
		err := c.Bootstrap(bounded(t))
		require.ErrorContains(t, err, "Bootstrap: node "+c.nodes[node].name)
		c.reach(node)
		for i := range r.servers {
			requireNoVote(t, r.client().vote(i))
		}
	}
}

func TestBootstrapWithoutTheGuard(t *testing.T) {
	r := newRig(t, 3)
	require.NoError(t, r.client(func(c *Config) { c.Unguarded = true }).Bootstrap(bounded(t)))
	require.Equal(t, []string{"", "", ""}, r.markers())
}

// It does nothing, and does not fail, where the nodes are in use and one is away, or
// has been emptied beside that.
func TestBootstrapInUseWithANodeAway(t *testing.T) {
	for name, before := range map[string]func(*rig){
		"others marked":  func(*rig) {},
		"first is empty": func(r *rig) { r.do(0, "FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRipeRig(t, 3)
			before(r)
			for away := range 3 {
				c := r.client()
				c.cutOff(away)
				require.NoError(t, c.Bootstrap(bounded(t)))
			}
			for _, text := range r.markers()[1:] {
				require.Contains(t, text, " 0 100000")
			}
		})
	}
}

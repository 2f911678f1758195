package quorum

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// requireRefused requires that a round fails with what waiting does not cure.
func (c *client) requireRefused(text string) {
	c.t.Helper()
	a, err := c.get("a")
	require.False(c.t, a.OK)
	require.ErrorContains(c.t, err, text)
	require.Equal(c.t, scripts.Refused, scripts.OutcomeOf(err), "%v", err)
}

func TestEvictingNodesHaveNoVote(t *testing.T) {
	r := newRig(t, 3)
	for i := range r.servers[:2] {
		r.do(i, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
	}
	unsafe := r.client(func(c *Config) { c.Evicting = true })
	require.ErrorContains(t, r.client().Bootstrap(bounded(t), true), `maxmemory-policy is "volatile-ttl", not noeviction`)
	for i := range r.servers {
		r.do(i, "FLUSHALL")
	}
	require.NoError(t, unsafe.Bootstrap(bounded(t), true))
	c := r.client()
	c.requireRefused(`maxmemory-policy is "volatile-ttl", not noeviction`)
	c.idle(0)
	c.idle(1)
	c.idle(2)
	unsafe.holds("b")
}

// One node that may evict is outvoted.
func TestOneEvictingNodeIsLeftOut(t *testing.T) {
	r := newRipeRig(t, 3)
	r.do(2, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	c := r.client()
	a, err := c.get("a")
	require.NoError(t, err)
	require.True(t, a.OK)
	c.idle(2)
	require.Empty(t, r.holder(2))
}

func TestTwoClientsOfOneServer(t *testing.T) {
	r := newRipeRig(t, 3)
	for name, change := range map[string]func(*Config){
		"guarded":   func(*Config) {},
		"unguarded": func(c *Config) { c.Unguarded = true },
	} {
		t.Run(name, func(t *testing.T) {
			way := redistest.NewProxy(t, r.server(2).Addr())
			clients := []rueidis.Client{
				r.server(0).Client(t), r.server(2).Client(t),
				r.server(2).Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{way.Addr()} }),
			}
			conf := Config{NodeTimeout: 10 * time.Second, Longest: lease, Log: slog.New(slog.DiscardHandler)}
			change(&conf)
			c := &client{Quorum: New(clients, conf), t: t}
			t.Cleanup(c.Close)
			for range 3 {
				_, err := c.get("a")
				require.ErrorContains(t, err, "of one server")
				require.ErrorContains(t, err, r.server(2).Addr())
				require.ErrorContains(t, err, way.Addr())
				require.ErrorContains(t, err, "clients")
				require.Equal(t, scripts.Refused, scripts.OutcomeOf(err))
			}
			for i := range r.servers {
				require.Empty(t, r.holder(i))
			}
			if name == "guarded" {
				require.ErrorContains(t, c.Bootstrap(bounded(t), true), "of one server")
			}
		})
	}
}

func TestFit(t *testing.T) {
	n := New(nil, Config{Longest: lease}).newTestNode()
	good := scripts.Standing{Run: "r", Version: "7.0.15", Policy: "noeviction", Deployment: scripts.Deployment{Longest: lease, Nodes: 1}}
	require.NoError(t, n.fit(good))
	for name, change := range map[string]func(*scripts.Standing){
		"Redis before 7":        func(s *scripts.Standing) { s.Version = "6.2.14" },
		"before 7":              func(s *scripts.Standing) { s.Version = "" },
		"scripts over a":        func(s *scripts.Standing) { s.Version = "unstable" },
		"no run id":             func(s *scripts.Standing) { s.Run = "" },
		"may evict":             func(s *scripts.Standing) { s.Policy = "" },
		"is 1m40.001s, not 1m4": func(s *scripts.Standing) { s.Longest = lease + time.Millisecond },
		"is 1m39.999s, not 1m4": func(s *scripts.Standing) { s.Longest = lease - time.Millisecond },
		"has 2 nodes, not 1":    func(s *scripts.Standing) { s.Nodes = 2 },
	} {
		s := good
		change(&s)
		err := n.fit(s)
		require.ErrorContains(t, err, name)
		require.Equal(t, scripts.Refused, scripts.OutcomeOf(err))
	}
	for _, version := range []string{"7.0.0", "7.4.1", "8.0.0", "10.1"} {
		s := good
		s.Version = version
		require.NoError(t, n.fit(s), version)
	}
}

// newTestNode is a node without a client.
func (q *Quorum) newTestNode() *node {
	n := &node{q: q, name: "n"}
	q.nodes = append(q.nodes, n)
	return n
}

// The longest lease is one number for all clients: a client with another one is
// refused, whichever is the longer.
func TestGuard_OtherLongestLease(t *testing.T) {
	r := newRipeRig(t, 3)
	marked := []string{r.markerOf(0), r.markerOf(1), r.markerOf(2)}
	for _, other := range []time.Duration{lease / 2, 2 * lease} {
		c := r.client(func(c *Config) { c.Longest = other })
		a, err := c.Acquire(bounded(t), "k", "a", lease/2, 10)
		require.False(t, a.OK)
		require.ErrorContains(t, err, "longest lease of this deployment is "+lease.String()+", not "+other.String())
		require.Equal(t, scripts.Refused, scripts.OutcomeOf(err))
		require.ErrorContains(t, c.Bootstrap(bounded(t), true), "longest lease")
	}
	require.Equal(t, marked, []string{r.markerOf(0), r.markerOf(1), r.markerOf(2)})
	r.client().holds("b")
}

// So is one with another number of nodes: the quorums of three and of five of the same
// need have no node in common.
func TestGuard_OtherNumberOfNodes(t *testing.T) {
	r := newRig(t, 5)
	three := r.part(0, 3)
	require.NoError(t, three.Bootstrap(bounded(t), true))
	c := r.client()
	for i, err := range c.refused("a") {
		if i < 3 {
			require.ErrorContains(t, err, "this deployment has 3 nodes, not 5")
			require.Equal(t, scripts.Refused, scripts.OutcomeOf(err))
		}
	}
	require.ErrorContains(t, c.Bootstrap(bounded(t), true), "has 3 nodes")
	require.ErrorContains(t, c.Bootstrap(bounded(t), false), "has 3 nodes")
	three.holds("b")

	// Each node votes for one number at a time, and between two of them for none.
	r.do(2, "DEL", marker)
	c.nodes[2].guard.forget()
	requireNoVote(t, c.vote(2))
	require.ErrorContains(t, r.part(0, 3).vote(2), "has 5 nodes, not 3")
	three.nodes[2].guard.forget()
	said, err := c.nodes[2].lookNow(bounded(t), scripts.Tell, "")
	require.NoError(t, err)
	_, err = c.nodes[2].lookNow(bounded(t), scripts.Ripen, said.Epoch)
	require.NoError(t, err)
	require.ErrorContains(t, three.vote(2), "has 5 nodes, not 3")
}

// A node under quarantine that other clients began stays there for as long as they
// said.
func TestGuard_QuarantineOfOthers(t *testing.T) {
	r := newRipeRig(t, 3)
	r.server(0).Restart()
	r.server(1).Restart()
	requireNoVote(t, r.client().vote(0))
	requireNoVote(t, r.client().vote(1))
	c := r.client(func(c *Config) { c.Longest = 200 * time.Millisecond })
	_, err := c.Acquire(bounded(t), "k", "a", 200*time.Millisecond, 10)
	require.ErrorContains(t, err, "longest lease")
	require.True(t, strings.HasSuffix(r.markerOf(0), " 100000 3"), r.markerOf(0))
}

// Garbage in the marker's place is a quarantine; something that is no string at all
// has to be cleared away by somebody.
func TestGuard_ForeignMarker(t *testing.T) {
	r := newRipeRig(t, 3)
	r.do(0, "SET", marker, "garbage")
	r.do(1, "DEL", marker)
	r.do(1, "LPUSH", marker, "garbage")
	c := r.client()
	requireNoVote(t, c.vote(0))
	require.ErrorContains(t, c.vote(1), "WRONGTYPE")
	require.NoError(t, c.vote(2))
	r.do(1, "DEL", marker)
	c.nodes[1].guard.forget()
	requireNoVote(t, c.vote(1))
}

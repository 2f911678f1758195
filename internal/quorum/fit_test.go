package quorum

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// guards are the two kinds of quorum: with and without the restart guard.
var guards = map[string]func(*Config){
	"guarded":   func(*Config) {},
	"unguarded": func(c *Config) { c.Unguarded = true },
}

// A policy that changes while lockers run costs the vote by the second lock after half a
// lease, or by a renewal, even for clients that knew the node before.
func TestGuard_PolicyIsSetWhileLockersRun(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
	c := r.client(func(c *Config) { c.Lease = 300 * time.Millisecond }) // never idle for so long
	r.warm(c)
	for i := range r.servers[:2] {
		r.do(i, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
	}
	locktest.Await(t, func() bool {
		answers := make([]scripts.Answer, 1)
		_ = c.Renew(locktest.Bounded(t), lease, []string{"warm"}, []string{ownW}, answers)
		return answers[0] == scripts.Unanswered
	})
	locktest.Await(t, func() bool {
		_, err := c.get(fresh(ownA))
		return err != nil && strings.Contains(err.Error(), "may evict locks")
	})
	for i := range r.servers[:2] {
		r.do(i, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	}
	locktest.Await(t, func() bool {
		a, _ := c.get(fresh(ownB))
		return a.OK
	})
}

// A locker that was unused for a lease checks the nodes before its next lock.
func TestGuard_PolicyIsSetWhileALockerIsIdle(t *testing.T) {
	r := newActiveHarness(t, 3)
	for name, change := range guards {
		t.Run(name, func(t *testing.T) {
			if name == "guarded" {
				needGuard(t)
			}
			c := r.client(change)
			r.warm(c)
			for i := range r.servers[:2] {
				c.idle(i)
				r.do(i, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
			}
			c.made = c.made.Add(-2 * c.Lease)
			_, err := c.get(fresh(ownA))
			require.Equal(t, !c.Unguarded, err != nil, "%v", err)
			if err != nil {
				require.ErrorContains(t, err, "may evict locks")
			}
			for i := range r.servers[:2] {
				r.do(i, "CONFIG", "SET", "maxmemory-policy", "noeviction")
			}
		})
	}
}

// There is at most one check in half a lease, and locks do not wait for it.
func TestGuard_ChecksAtMostTwiceALease(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
	for half, want := range map[time.Duration]bool{time.Millisecond: true, time.Hour: false} {
		c := r.client(func(c *Config) { c.Lease = 2 * half })
		r.warm(c)
		var looks atomic.Int64
		for _, way := range c.ways {
			way.OnRequest(func(cmd []string) redistest.Verdict {
				if slices.Contains(cmd, "observe") {
					looks.Add(1)
				}
				return redistest.Pass
			})
		}
		for i := 0; i < 50 || want && looks.Load() < 5; i++ {
			owner := fresh(ownA)
			a, err := c.Acquire(locktest.Bounded(t), owner, owner, lease, 10)
			require.NoError(t, err)
			require.True(t, a.OK)
		}
		require.Equal(t, want, looks.Load() > 0)
	}
}

func TestFit(t *testing.T) {
	n := New(nil, Config{Longest: lease}).newTestNode()
	good := scripts.Standing{Run: "r", Version: "7.0.15", Policy: "noeviction", Deployment: scripts.Deployment{Longest: lease, Nodes: 1}}
	require.NoError(t, n.fit(good))
	for name, change := range map[string]func(*scripts.Standing){
		"use WithoutRestartGuard": func(s *scripts.Standing) { s.Version = "6.2.14" },
		"before 7":                func(s *scripts.Standing) { s.Version = "" },
		"scripts over a":          func(s *scripts.Standing) { s.Version = "unstable" },
		"no run id":               func(s *scripts.Standing) { s.Run = "" },
		"may evict":               func(s *scripts.Standing) { s.Policy = "" },
		"is 1m40.001s, not 1m4":   func(s *scripts.Standing) { s.Longest = lease + time.Millisecond },
		"is 1m39.999s, not 1m4":   func(s *scripts.Standing) { s.Longest = lease - time.Millisecond },
		"has 2 nodes, not 1":      func(s *scripts.Standing) { s.Nodes = 2 },
	} {
		s := good
		change(&s)
		err := n.fit(s)
		require.ErrorContains(t, err, name)
		require.Equal(t, scripts.Refused, scripts.OutcomeOf(err))
		require.Equal(t, s.Version != good.Version, errors.Is(err, holdfast.ErrOldServer))
	}
	for _, version := range []string{"7.0.0", "7.4.1", "8.0.0", "10.1"} {
		s := good
		s.Version = version
		require.NoError(t, n.fit(s), version)
	}
	n.q.Evicting, good.Policy = true, "volatile-ttl"
	require.NoError(t, n.fit(good))
}

// newTestNode is a node without a client.
func (q *Quorum) newTestNode() *node {
	n := &node{q: q, name: "n"}
	q.nodes = append(q.nodes, n)
	return n
}

// The longest lease is one setting for all clients: a node refuses a client with another
// one, longer or shorter.
func TestGuard_OtherLongestLease(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
	marked := []string{r.markerOf(0), r.markerOf(1), r.markerOf(2)}
	for _, other := range []time.Duration{lease / 2, 2 * lease} {
		c := r.client(func(c *Config) { c.Longest = other })
		a, err := c.Acquire(locktest.Bounded(t), "k", ownA, lease/2, 10)
		require.False(t, a.OK)
		require.ErrorContains(t, err, "longest lease of this deployment is "+lease.String()+", not "+other.String())
		require.Equal(t, scripts.Refused, scripts.OutcomeOf(err))
		require.ErrorContains(t, c.Bootstrap(locktest.Bounded(t), true), "longest lease")
	}
	require.Equal(t, marked, []string{r.markerOf(0), r.markerOf(1), r.markerOf(2)})
	r.client().holds(ownB)
}

// A node also refuses a client with another number of nodes: the quorums of three and of
// five of the same nodes may share none.
func TestGuard_OtherNumberOfNodes(t *testing.T) {
	needGuard(t)
	r := newHarness(t, 5)
	three := r.part(0, 3)
	require.NoError(t, three.Bootstrap(locktest.Bounded(t), true))
	c := r.client()
	for i, err := range c.refused(ownA) {
		if i < 3 {
			require.ErrorContains(t, err, "this deployment has 3 nodes, not 5")
			require.Equal(t, scripts.Refused, scripts.OutcomeOf(err))
		}
	}
	require.ErrorContains(t, c.Bootstrap(locktest.Bounded(t), true), "has 3 nodes")
	require.ErrorContains(t, c.Bootstrap(locktest.Bounded(t), false), "has 3 nodes")
	three.holds(ownB)

	// Each node votes for one number at a time, and between two of them for none.
	r.do(2, "DEL", marker)
	c.nodes[2].guard.forget()
	require.ErrorContains(t, c.vote(2), "has 3 nodes, not 5", "half of the others say so")
	r.do(1, "DEL", marker)
	c.nodes[2].guard.forget()
	requireNoVote(t, c.vote(2))
	require.ErrorContains(t, r.part(0, 3).vote(2), "has 5 nodes, not 3")
	said := checked(t, c.nodes[2], scripts.Observe, "")
	_ = checked(t, c.nodes[2], scripts.Activate, said.Epoch)
	c.nodes[2].guard.forget()
	require.NoError(t, c.vote(2))
	three.nodes[2].guard.forget()
	require.ErrorContains(t, three.vote(2), "has 5 nodes, not 3")
}

// Nodes are emptied one after another, and each time a client with another setting reaches
// them first. It does not mark them for less than the leases of the others.
func TestG1_OtherLongestLeaseWhileNodesAreEmptied(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
	x := r.client()
	x.cutOff(2)
	x.holds(ownX)
	x.reach(2)
	short := func() *client { return r.client(func(c *Config) { c.Longest = 200 * time.Millisecond }) }
	knew := short()
	for i := range r.servers {
		r.do(i, "FLUSHALL")
		for _, y := range []*client{knew, short()} {
			require.ErrorContains(t, y.vote(i), "longest lease")
			require.Error(t, y.Bootstrap(locktest.Bounded(t), true))
			require.NotContains(t, r.markerOf(i), " 200 ", "only others may mark it")
		}
		requireNoVote(t, r.client().vote(i))
		require.True(t, strings.HasSuffix(r.markerOf(i), " 100000 3"), r.markerOf(i))
	}
}

// One node marked with another number, as by an overlooked client, does not keep the others
// from being marked.
func TestGuard_OneNodeOfAnotherNumber(t *testing.T) {
	needGuard(t)
	r := newHarness(t, 4)
	requireNoVote(t, r.part(0, 1).vote(0))
	for i := 1; i < 4; i++ {
		requireNoVote(t, r.client().vote(i))
	}
	require.ErrorContains(t, r.client().vote(0), "has 1 nodes, not 4")
}

// Garbage in the marker's place is a quarantine. An operator has to delete something that
// is not a string.
func TestGuard_ForeignMarker(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
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

package quorum

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// policy has two of the nodes use a policy.
func (r *harness) policy(name string) {
	r.t.Helper()
	for i := range r.servers[:2] {
		r.do(i, "CONFIG", "SET", "maxmemory-policy", name)
	}
}

// A policy that changes while lockers run costs the vote by the second lock after half a
// lease, or by a renewal, even for clients that knew the node before.
func TestGuard_PolicyIsSetWhileLockersRun(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.warm(func(c *Config) { c.Lease = 300 * time.Millisecond }) // never idle for so long
		r.policy("volatile-ttl")
		locktest.Await(t, func() bool {
			answer, _ := c.renew("warm", ownW)
			return answer == watchdog.Unanswered
		})
		locktest.Await(t, func() bool {
			_, err := c.get(fresh(ownA))
			return err != nil && strings.Contains(err.Error(), "may evict locks")
		})
		r.policy("noeviction")
		c.takes(ownB)
	})
}

// A locker that was unused for a lease checks the nodes before its next lock, unless it has no
// restart guard.
func TestGuard_PolicyIsSetWhileALockerIsIdle(t *testing.T) {
	inBubbles(t, 3, guards, func(t *testing.T, r *harness, change func(*Config)) {
		c := r.warm(change)
		r.policy("volatile-ttl")
		time.Sleep(2 * lease)
		_, err := c.get(ownA)
		if c.Unguarded {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "may evict locks")
		}
	})
}

// There is at most one check in half a lease, and locks do not wait for it.
func TestGuard_ChecksAtMostTwiceALease(t *testing.T) {
	half := map[string]time.Duration{"many": time.Millisecond, "none": time.Hour}
	inBubbles(t, 3, half, func(t *testing.T, r *harness, half time.Duration) {
		c := r.warm(func(c *Config) { c.Lease = 2 * half })
		var checks []*atomic.Int64
		for node := range r.servers {
			checks = append(checks, c.requests(node, "observe"))
		}
		for range 50 {
			owner := fresh(ownA)
			a, err := c.Acquire(t.Context(), asking(owner, owner, lease))
			require.NoError(t, err)
			require.True(t, a.OK)
		}
		for _, n := range checks {
			require.Equal(t, half == time.Hour, n.Load() == 0)
			require.Equal(t, half != time.Hour, n.Load() >= 5)
		}
	})
}

func TestFit(t *testing.T) {
	n := New(nil, Config{MaxLease: lease}).newTestNode()
	good := wire.Standing{RunID: "r", Version: "7.0.15", Policy: "noeviction", Deployment: wire.Deployment{MaxLease: lease, Nodes: 1}}
	require.NoError(t, n.fit(good))
	for says, change := range map[string]func(*wire.Standing){
		"use WithoutRestartGuard": func(s *wire.Standing) { s.Version = "6.2.14" },
		"before 7":                func(s *wire.Standing) { s.Version = "" },
		"scripts over a":          func(s *wire.Standing) { s.Version = "unstable" },
		"no run id":               func(s *wire.Standing) { s.RunID = "" },
		"may evict":               func(s *wire.Standing) { s.Policy = "" },
		"is 1m40.001s, not 1m4":   func(s *wire.Standing) { s.MaxLease = lease + time.Millisecond },
		"is 1m39.999s, not 1m4":   func(s *wire.Standing) { s.MaxLease = lease - time.Millisecond },
		"has 2 nodes, not 1":      func(s *wire.Standing) { s.Nodes = 2 },
	} {
		s := good
		change(&s)
		err := n.fit(s)
		require.ErrorContains(t, err, says)
		require.Equal(t, wire.Refused, wire.OutcomeOf(err))
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
	inBubble(t, 3, func(t *testing.T, r *harness) {
		marked := r.markers()
		for _, other := range []time.Duration{lease / 2, 2 * lease} {
			c := r.client(func(c *Config) { c.MaxLease = other })
			a, err := c.Acquire(t.Context(), asking("k", ownA, lease/2))
			require.False(t, a.OK)
			require.ErrorContains(t, err, "longest lease of this deployment is "+lease.String()+", not "+other.String())
			require.Equal(t, wire.Refused, wire.OutcomeOf(err))
			require.ErrorContains(t, c.DeclareNothingHeld(t.Context()), "longest lease")
		}
		require.Equal(t, marked, r.markers())
		r.client().has(ownB)
	})
}

// A node also refuses a client with another number of nodes: the quorums of three and of
// five of the same nodes may share none.
func TestGuard_OtherNumberOfNodes(t *testing.T) {
	onFresh(t, 5, func(t *testing.T, r *harness) {
		three, c := r.part(0, 3), r.client()
		require.NoError(t, three.DeclareNothingHeld(t.Context()))
		for _, err := range c.refused(ownA)[:3] {
			require.ErrorContains(t, err, "this deployment has 3 nodes, not 5")
			require.Equal(t, wire.Refused, wire.OutcomeOf(err))
		}
		require.ErrorContains(t, c.DeclareNothingHeld(t.Context()), "has 3 nodes")
		three.has(ownB)

		// Each node votes for one number at a time, and between two of them for none.
		r.do(2, "DEL", marker)
		c.nodes[2].guard.forget()
		require.ErrorContains(t, c.vote(2), "has 3 nodes, not 5", "half of the others say so")
		r.do(1, "DEL", marker)
		c.nodes[2].guard.forget()
		c.requireNoVote(2)
		require.ErrorContains(t, r.part(0, 3).vote(2), "has 5 nodes, not 3")
		reply := checked(t, c.nodes[2], wire.Observe, "")
		_ = checked(t, c.nodes[2], wire.Activate, reply.Incarnation)
		c.nodes[2].guard.forget()
		require.NoError(t, c.vote(2))
		three.nodes[2].guard.forget()
		require.ErrorContains(t, three.vote(2), "has 5 nodes, not 3")
	})
}

// Nodes are emptied one after another, and each time a client with another setting reaches
// them first. It does not mark them for less than the leases of the others.
func TestG1_OtherLongestLeaseWhileNodesAreEmptied(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x := r.client()
		x.cutOff(2)
		x.takes(ownX)
		x.ways[2].Refuse(false)
		short := func() *client { return r.client(func(c *Config) { c.MaxLease = 200 * time.Millisecond }) }
		knew := short()
		for i := range r.servers {
			r.do(i, "FLUSHALL")
			for _, y := range []*client{knew, short()} {
				require.ErrorContains(t, y.vote(i), "longest lease")
				require.Error(t, y.DeclareNothingHeld(t.Context()))
				require.NotContains(t, r.markers()[i], " 200 ", "only others may mark it")
			}
			r.client().requireNoVote(i)
			require.Regexp(t, " 100000 3$", r.markers()[i])
		}
	})
}

// One node marked with another number, as by an overlooked client, does not keep the others
// from being marked.
func TestGuard_OneNodeOfAnotherNumber(t *testing.T) {
	onFresh(t, 4, func(t *testing.T, r *harness) {
		r.part(0, 1).requireNoVote(0)
		for i := 1; i < 4; i++ {
			r.client().requireNoVote(i)
		}
		require.ErrorContains(t, r.client().vote(0), "has 1 nodes, not 4")
	})
}

// Garbage in the marker's place is a quarantine. An operator has to delete something that
// is not a string.
func TestGuard_ForeignMarker(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		r.do(0, "SET", marker, "garbage")
		r.do(1, "DEL", marker)
		r.do(1, "LPUSH", marker, "garbage")
		c := r.client()
		c.requireNoVote(0)
		require.ErrorContains(t, c.vote(1), "WRONGTYPE")
		require.NoError(t, c.vote(2))
		r.do(1, "DEL", marker)
		c.nodes[1].guard.forget()
		c.requireNoVote(1)
	})
}

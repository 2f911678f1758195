package quorum

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Each way in which a node may forget a lock, or come back with others. The node is one of
// two of three that hold the lock; the third never knew of it.
func TestG1_GuardAgainstNodesThatForget(t *testing.T) {
	needGuard(t)
	for name, fault := range map[string]func(r *harness){
		"restarted empty": func(r *harness) { r.server(1).Restart() },
		"flushed":         func(r *harness) { r.do(1, "FLUSHALL") },
		"demoted, and promoted with the data of the third": func(r *harness) {
			follow(r.t, r.server(1), r.server(2))
			r.do(1, "REPLICAOF", "NO", "ONE")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, 3)
			follow(t, redistest.Start(t), r.server(2)) // its second replica does not give it another replID
			require.NoError(t, r.client().Bootstrap(bounded(t), true))
			x, knew, fresh := r.client(), r.client(), r.client()
			r.warm(knew)
			x.cutOff(2)
			x.holds(ownX)
			require.Empty(t, r.holder(2))
			fault(r)
			require.NotContains(t, r.holder(1), ownX)
			for _, y := range []*client{knew, fresh} {
				said := y.refused(ownY)
				require.ErrorIs(t, said[0], ErrHeld)
				requireNoVote(t, said[1])
				requireVoted(t, said[2])
			}
		})
	}
}

// warm makes a client learn the votes of all nodes.
func (r *harness) warm(c *client) {
	r.t.Helper()
	a, err := c.Acquire(bounded(r.t), "warm", ownW, lease, 10)
	require.NoError(r.t, err)
	require.True(r.t, a.OK)
	for _, n := range c.nodes {
		until(r.t, func() bool { return c.Quorum.holds.get(ownW).part(n).state >= present })
		require.True(r.t, c.Unguarded || n.guard.present() != nil)
	}
}

// A flush under quarantine begins it again, even for clients that knew the vote.
func TestG1_FlushedUnderQuarantine(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
	x, knew, fresh := r.client(), r.client(), r.client()
	r.warm(knew)
	x.cutOff(2)
	x.holds(ownX)
	for range 3 {
		r.do(1, "FLUSHALL")
		for _, y := range []*client{knew, fresh} {
			y.nodes[1].guard.forget() // else it would use the answer of a second ago
			requireNoVote(t, y.refused(ownY)[1])
		}
		require.NotEmpty(t, r.markerOf(1))
	}
}

// A replica that is promoted in the place of its master has the master's marker, but not
// its last locks.
func TestG1_PromotedReplica(t *testing.T) {
	needGuard(t)
	r := newHarness(t, 3)
	replica := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	follow(t, replica, r.server(1)) // before the marker: a first replica is a new replID
	require.NoError(t, r.client().Bootstrap(bounded(t), true))
	x, knew := r.client(), r.client()
	r.warm(knew)
	until(t, func() bool {
		m := replica.Do(t, "GET", marker)
		text, _ := m.ToString()
		return text == r.markerOf(1)
	})
	replica.Do(t, "REPLICAOF", "NO", "ONE")
	x.cutOff(2)
	x.holds(ownX)

	r.moved[1].Store(replica)
	fresh := r.client()
	r.servers[1].Kill()
	for _, y := range []*client{knew, fresh} {
		said := y.refused(ownY)
		require.ErrorIs(t, said[0], ErrHeld)
		requireNoVote(t, said[1])
		requireVoted(t, said[2])
	}
}

// A master that follows its own lagging replica and is promoted back keeps its run id, its
// scripts and its marker. Only the replication ID changes.
func TestG1_PromotedBackWithItsOwnOldData(t *testing.T) {
	needGuard(t)
	r := newHarness(t, 3)
	replica := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	follow(t, replica, r.server(1))
	require.NoError(t, r.client().Bootstrap(bounded(t), true))
	until(t, func() bool {
		m := replica.Do(t, "GET", marker)
		text, _ := m.ToString()
		return text == r.markerOf(1)
	})
	x, knew, fresh := r.client(), r.client(), r.client()
	r.warm(knew)
	marked := r.markerOf(1)
	replica.Do(t, "REPLICAOF", "NO", "ONE")
	x.cutOff(2)
	x.holds(ownX)
	follow(t, r.server(1), replica)
	r.do(1, "REPLICAOF", "NO", "ONE")
	require.Equal(t, marked, r.markerOf(1))
	require.Empty(t, r.holder(1))
	for _, y := range []*client{knew, fresh} {
		said := y.refused(ownY)
		require.ErrorIs(t, said[0], ErrHeld)
		requireNoVote(t, said[1])
		requireVoted(t, said[2])
	}
}

// requireVoted requires that a node would give the key, or has given it to an earlier round
// of clients that may not have it.
func requireVoted(t *testing.T, said error) {
	t.Helper()
	require.True(t, said == nil || errors.Is(said, ErrHeld), "%v", said)
}

func follow(t *testing.T, replica, master *redistest.Server) {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica.Do(t, "REPLICAOF", host, port)
	until(t, func() bool {
		info := replica.Do(t, "INFO", "replication")
		text, err := info.ToString()
		return err == nil && strings.Contains(text, "master_link_status:up")
	})
}

// Without the guard, the paper's warning comes true.
func TestG1_ControlWithoutTheGuard(t *testing.T) {
	r := newHarness(t, 3)
	unguarded := func(c *Config) { c.Unguarded = true }
	x, y := r.client(unguarded), r.client(unguarded)
	x.cutOff(2)
	x.holds(ownX)
	r.server(1).Restart()
	y.holds(ownY)
}

// SCRIPT FLUSH costs each node one check, and no lock or vote.
func TestGuard_F23_ScriptFlush(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
	c := r.client()
	r.warm(c)
	for i := range r.servers {
		r.do(i, "SCRIPT", "FLUSH")
	}
	marked := []string{r.markerOf(0), r.markerOf(1), r.markerOf(2)}
	var looks, loads, texts, votes atomic.Int64
	for _, way := range c.ways {
		way.OnRequest(func(cmd []string) redistest.Verdict {
			switch {
			case cmd[0] == "EVAL" && strings.HasPrefix(cmd[1], "-- quorum_check"):
				looks.Add(1)
			case cmd[0] == "EVAL":
				texts.Add(1)
			case cmd[0] == "SCRIPT":
				loads.Add(1)
			case cmd[0] == "EVALSHA":
				votes.Add(1)
			}
			return redistest.Pass
		})
	}
	a, err := c.get(ownA)
	require.NoError(t, err)
	require.True(t, a.OK)
	until(t, func() bool { return r.holder(0) != "" && r.holder(1) != "" && r.holder(2) != "" })
	require.EqualValues(t, 3, looks.Load())
	require.EqualValues(t, 3, loads.Load())
	require.EqualValues(t, 6, votes.Load())
	require.Zero(t, texts.Load(), "a script that names a vote is never sent as text")
	require.Equal(t, marked, []string{r.markerOf(0), r.markerOf(1), r.markerOf(2)})
}

// A check that finds its connection lost, as after a restart, is repeated: the node does
// not count as one without a vote.
func TestGuard_ChecksTwice(t *testing.T) {
	needGuard(t)
	r := newActiveHarness(t, 3)
	c := r.client()
	r.warm(c)
	n := c.nodes[0]
	n.guard.forget()
	lost := c.ways[0].SwallowReply(1, func(cmd []string) bool {
		return cmd[0] == "EVAL" && strings.HasPrefix(cmd[1], "-- quorum_check")
	})
	vote, err := n.voting(bounded(t))
	<-lost
	require.NoError(t, err)
	require.NotNil(t, vote)
}

package quorum

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Each way in which a node may forget a lock, or come back with others. The node is one of
// two of three that hold the lock; the third never knew of it. A replica has its marker, and
// knows of the lock no more than the third.
func TestG1_GuardAgainstNodesThatForget(t *testing.T) {
	needGuard(t)
	for name, fault := range map[string]func(r *harness, replica *redistest.Server){
		"restarted empty": func(r *harness, _ *redistest.Server) { r.servers[1].Restart() },
		"flushed":         func(r *harness, _ *redistest.Server) { r.do(1, "FLUSHALL") },
		"demoted, and promoted with the data of the third": func(r *harness, _ *redistest.Server) {
			follow(r.t, r.servers[1], r.servers[2])
			r.do(1, "REPLICAOF", "NO", "ONE")
		},
		"replaced by its replica": func(r *harness, replica *redistest.Server) {
			r.servers[1].Kill()
			r.servers[1] = replica
		},
		// It keeps its run id, its scripts and its marker: only the replication ID changes.
		"promoted back with its own old data": func(r *harness, replica *redistest.Server) {
			marked := r.markerOf(1)
			follow(r.t, r.servers[1], replica)
			r.do(1, "REPLICAOF", "NO", "ONE")
			require.Equal(r.t, marked, r.markerOf(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, 3)
			replica := redistest.Start(t, "--repl-diskless-sync-delay", "0")
			follow(t, replica, r.servers[1]) // before the marker: a first replica is a new replID
			follow(t, redistest.Start(t), r.servers[2])
			require.NoError(t, r.client().Bootstrap(locktest.Bounded(t), true))
			locktest.Await(t, func() bool {
				m := replica.Do(t, "GET", marker)
				text, _ := m.ToString()
				return text == r.markerOf(1)
			})
			replica.Do(t, "REPLICAOF", "NO", "ONE")
			x, knew, fresh := r.client(), r.client(), r.client()
			r.warm(knew)
			x.cutOff(2)
			x.holds(ownX)
			require.Empty(t, r.holder(2))
			fault(r, replica)
			require.NotContains(t, r.holder(1), ownX)
			for _, y := range []*client{knew, fresh} {
				if now := r.servers[1].Addr(); y.ways[1].Target() != now {
					y.ways[1].Swap(now)
				}
				said := y.refused(ownY)
				require.ErrorIs(t, said[0], holdfast.ErrHeld)
				requireNoVote(t, said[1])
				// The third would give the key, or has given it to an earlier round of clients that may not have it.
				require.True(t, said[2] == nil || errors.Is(said[2], holdfast.ErrHeld), "%v", said[2])
			}
		})
	}
}

// warm makes a client learn the votes of all nodes.
func (r *harness) warm(c *client) {
	r.t.Helper()
	a, err := c.Acquire(locktest.Bounded(r.t), "warm", ownW, lease, 10)
	require.NoError(r.t, err)
	require.True(r.t, a.OK)
	for _, n := range c.nodes {
		locktest.Await(r.t, func() bool { return c.Quorum.holds.get(ownW).part(n).state >= present })
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

func follow(t *testing.T, replica, master *redistest.Server) {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica.Do(t, "REPLICAOF", host, port)
	locktest.Await(t, func() bool {
		info := replica.Do(t, "INFO", "replication")
		text, err := info.ToString()
		return err == nil && strings.Contains(text, "master_link_status:up")
	})
}

// SCRIPT FLUSH costs each node one check, and no lock or vote.
func TestGuard_F23_ScriptFlush(t *testing.T) {
	needGuard(t)
	r, c := newWarmClient(t, 3)
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
	c.has(ownA)
	locktest.Await(t, func() bool { return r.holder(0) != "" && r.holder(1) != "" && r.holder(2) != "" })
	require.EqualValues(t, 3, looks.Load())
	require.EqualValues(t, 3, loads.Load())
	require.EqualValues(t, 6, votes.Load())
	require.Zero(t, texts.Load(), "a script that names a vote is never sent as text")
	require.Equal(t, marked, []string{r.markerOf(0), r.markerOf(1), r.markerOf(2)})
}

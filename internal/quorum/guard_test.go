package quorum

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Each way in which a node may forget a lock, or come back with others. The node is one of
// two of three that hold the lock; the third never knew of it. A replica has its marker, and
// knows of the lock no more than the third.
func TestG1_GuardAgainstNodesThatForget(t *testing.T) {
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
			marked := r.markers()
			follow(r.t, r.servers[1], replica)
			r.do(1, "REPLICAOF", "NO", "ONE")
			require.Equal(r.t, marked, r.markers())
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := onServers(t)
			replica := redistest.Start(t, "--repl-diskless-sync-delay", "0")
			follow(t, replica, r.servers[1]) // before the marker: a first replica is a new replID
			follow(t, redistest.Start(t), r.servers[2])
			require.NoError(t, r.client().DeclareNothingHeld(t.Context()))
			locktest.Await(t, func() bool {
				m := replica.Do(t, "GET", marker)
				text, _ := m.ToString()
				return text == r.markers()[1]
			})
			replica.Do(t, "REPLICAOF", "NO", "ONE")
			x, knew, fresh := r.client(), r.warm(), r.client()
			x.cutOff(2)
			x.takes(ownX)
			require.Empty(t, r.holders()[2])
			fault(r, replica)
			require.NotContains(t, r.holders()[1], ownX)
			for _, y := range []*client{knew, fresh} {
				if now := r.servers[1].Addr(); y.ways[1].Target() != now {
					y.ways[1].Swap(now)
				}
				answers := y.refused(ownY)
				require.ErrorIs(t, answers[0], holdfast.ErrHeld)
				require.ErrorAs(t, answers[1], new(noVote))
				// The third would give the key, or has given it to an earlier round of clients that may not have it.
				require.True(t, answers[2] == nil || errors.Is(answers[2], holdfast.ErrHeld), "%v", answers[2])
			}
		})
	}
}

// follow makes a real server a replica.
func follow(t *testing.T, replica, master locktest.Server) {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica.Do(t, "REPLICAOF", host, port)
	locktest.Await(t, func() bool {
		return strings.Contains(locktest.Text(t, replica, "INFO", "replication"), "master_link_status:up")
	})
}

// A flush under quarantine begins it again, even for clients that knew the vote.
func TestG1_FlushedUnderQuarantine(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x, knew, fresh := r.client(), r.warm(), r.client()
		x.cutOff(2)
		x.takes(ownX)
		for range 3 {
			r.do(1, "FLUSHALL")
			for _, y := range []*client{knew, fresh} {
				y.nodes[1].guard.forget() // else it would use the answer of a second ago
				require.ErrorAs(t, y.refused(ownY)[1], new(noVote))
			}
			require.NotEmpty(t, r.markers()[1])
		}
	})
}

package quorum

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// MaxNodes is how many nodes a quorum may have.
const MaxNodes = 15

// Config configures a quorum. The lock kind checks it.
type Config struct {
	holdfast.Settings               // of the locker
	NodeTimeout       time.Duration // of one call to one node
	MaxLease          time.Duration // longest lease of the deployment
	Unguarded         bool          // nodes vote right after a restart
	Evicting          bool          // nodes vote although they may evict locks
	ClockFaults       int           // how many clocks may jump: a lease needs as many votes beyond a quorum
}

// Quorum is the backend of an engine on several independent nodes. Safe for
// concurrent use.
type Quorum struct {
	Config  // immutable after New
	nodes   []*node
	quorum  int          // more than half of the nodes
	need    int          // votes that a lease and its renewals need: without ClockFaults of them, a quorum is left
	calls   *calls.Calls // of the engine; its Now is the clock of times in ns
	bounds  calls.Bounds // of calls to nodes, which have at least four fifths of NodeTimeout
	stop    context.CancelFunc
	work    calls.Tasks   // calls and repairers
	short   calls.Tasks   // of a call or two each, which Close does not cut off
	holds   sync.Map      // the live holds, and those with a round under way, by owner: *hold
	rtt     calls.Average // time of a round
	checked atomic.Bool   // all nodes have been, see checkNodes
}

// New returns a quorum of the Redises of clients, which the caller closes. It makes no call.
func New(clients []rueidis.Client, c Config) *Quorum {
	q := &Quorum{Config: c, quorum: len(clients)/2 + 1}
	q.need = q.quorum + c.ClockFaults
	q.calls = calls.New(c.Lease, nil)
	q.bounds.Base, q.stop = context.WithCancel(context.Background())
	q.bounds.Timeout, q.bounds.Hidden = c.NodeTimeout*4/5, true
	for i, client := range clients {
		q.nodes = append(q.nodes, newNode(q, i, client))
	}
	return q
}

// Calls are those of the engine.
func (q *Quorum) Calls() *calls.Calls { return q.calls }

// deployment is the part of the configuration that markers keep.
func (q *Quorum) deployment() wire.Deployment {
	return wire.Deployment{MaxLease: q.MaxLease, Nodes: len(q.nodes)}
}

// lostAt is how many nodes must say "not yours" so that no quorum can be left.
func (q *Quorum) lostAt() int { return len(q.nodes) - q.quorum + 1 }

// EvictionPolicy says nothing: the options say whether a node that may evict locks has a vote.
func (q *Quorum) EvictionPolicy(context.Context) (string, error) { return "", nil }

// Close lets short work end, gives up the other calls, and waits for the goroutines.
func (q *Quorum) Close() {
	q.short.Shut()
	q.stop()
	q.work.Shut()
	var subscribers sync.WaitGroup
	for _, n := range q.nodes {
		subscribers.Go(n.subscriber.Close) // a silent node takes its time
	}
	subscribers.Wait()
}

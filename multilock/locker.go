package multilock

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/quorum"
	"github.com/holdfast-go/holdfast/internal/racing"
)

// Locker locks keys on a quorum of independent Redis masters. The nodes and the other
// lockers see it as one client. Safe for concurrent use. One locker per process and set of
// nodes is enough.
type Locker struct {
	engine *engine.Engine
	quorum *quorum.Quorum
	opened []rueidis.Client // that Close closes, of Open; immutable
}

// New returns a locker on the Redises of clients, 1 to 15 independent masters. The caller
// keeps the clients, may share them, and closes them after the locker. A quorum is n/2+1 of
// n nodes: an even number survives no more failures than one node fewer. New makes no call
// to Redis. If a node may be unavailable when the program starts, use [Open].
//
// All programs must use the same nodes. The nodes remember their number, and have no vote
// for a locker with another number. To change it, add or remove one node at a time: stop
// all programs, delete the key holdfast_node on all nodes, the new or the removed one as
// well, and start the programs with the other number. The nodes then have no vote for the
// longest lease, so an overlooked program does no harm: if it marks a node first, the node
// refuses the other lockers, with an error that says so, until the key is deleted again. To
// replace a node, remove it, and then add the other. Changing two nodes together, or
// replacing one in one step, can make a second quorum in addition to that of a locker that
// still uses the former nodes.
//
// New fails on too few or too many clients, a nil client, a client of a Redis Cluster, and
// an option that is out of range or of another kind, such as [holdfast.WithReplicas] and
// [holdfast.WithShardedPubSub], which the error names. Two clients of one server are one vote. A
// server has no vote if it is older than Redis 7.0, may evict locks, or has another longest
// lease or number of nodes; [WithoutRestartGuard] drops all of these conditions. The log
// reports all such servers; if too few votes are left, locks fail with an error that says
// why.
func New(clients []rueidis.Client, opts ...holdfast.Option) (*Locker, error) {
	c, q, err := configure("New", len(clients), opts)
	if err != nil {
		return nil, err
	}
	for i, client := range clients {
		if client == nil {
			return nil, errs.Invalid("multilock: New: client %d is nil", i)
		}
		if client.Mode() == rueidis.ClientModeCluster {
			return nil, errs.Invalid("multilock: New: client %d is a Redis Cluster client; each must connect to one independent master", i)
		}
	}
	return newLocker(clients, c, q), nil
}

var _ racing.Splitting = (*quorum.Quorum)(nil)

func newLocker(clients []rueidis.Client, c engine.Config, settings quorum.Config) *Locker {
	q := quorum.New(clients, settings)
	return &Locker{engine: racing.New(q, c), quorum: q}
}

// DeclareNothingHeld states that no lease of these nodes is held or will be taken before it
// returns: the nodes are new, or all programs have been stopped for the longest lease (see
// [WithMaxLease]). Then no node can have forgotten a lease, and all nodes vote immediately, whichever
// locker has marked them. It is for a script that a person runs to set up a deployment, never for
// the start of a service: nodes without persistence look new after a restart, even one after
// another, and the statement would give away what others hold. A lock needs no such call: it waits
// until the nodes vote, see [Locker.Nodes].
//
// It does nothing if all nodes vote, and fails if only some do, as those may be in use. If it
// fails halfway, the nodes have no vote for at most the longest lease. Errors:
// [*holdfast.QuorumError] if a node does not answer or cannot vote; the context's, if it has ended;
// ErrClosed after Close. Calling again does no harm.
// It costs a few round trips to each node, on connections of their own, within ctx and twice the
// time that [Locker.Nodes] gives a node.
func (l *Locker) DeclareNothingHeld(ctx context.Context) error {
	err := holdfast.ErrClosed
	if l.engine.With("", func(*engine.Key) {}) {
		err = l.quorum.DeclareNothingHeld(ctx)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = errs.WithContext(ctx, err)
	}
	return fmt.Errorf("multilock: DeclareNothingHeld: %w", err)
}

// Do locks key, runs f with a context that is bound to the lease, and unlocks; see
// [holdfast.Locker].
func (l *Locker) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) error {
	return l.engine.Do(ctx, key, f, opts...)
}

// Lock waits until it has key or ctx ends; see [holdfast.Locker].
//
// Waiters of this locker are served in the order in which they came; between
// processes there is no order.
//
// A free key costs one round trip to each node, at the same time, and with [holdfast.WithFencing] a
// second one to those that said yes. A wait for another process costs the subscription and
// its end, one attempt once that is live, one for each release that is this process's turn, and
// one each time the holder's lease should have ended.
//
// If too few nodes say yes, the error is a [*holdfast.QuorumError] with the answer of each node.
func (l *Locker) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.Lock(ctx, key, opts...)
}

// TryLock makes one attempt: one round trip to each node, with [holdfast.WithFencing] two, or none
// if this locker has key or wants it. If several lockers ask at the same time and none has a
// quorum, the one with the most votes asks up to three times more. See [holdfast.Locker].
func (l *Locker) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLock(ctx, key, opts...)
}

// TryLockFor is [Locker.Lock] with a wait of at most the given time.
func (l *Locker) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLockFor(ctx, key, wait, opts...)
}

// Inspect returns the holder of key on a quorum of nodes; see [holdfast.Operator]. It costs
// one round trip to each node, at the same time.
func (l *Locker) Inspect(ctx context.Context, key string) (holdfast.Status, error) {
	return l.engine.Inspect(ctx, key)
}

// Locks returns the locks held on a quorum of nodes whose keys begin with prefix; see
// [holdfast.Operator]. Of the nodes that answer, a quorum must name the same owner. If too few
// answer, the last error is a [*holdfast.QuorumError]. It costs one round trip to each node
// for each 1000 names that it has, and one for each 256 that may be locks.
func (l *Locker) Locks(ctx context.Context, prefix string) iter.Seq2[holdfast.Status, error] {
	return l.engine.Locks(ctx, prefix)
}

// ForceUnlock, for operators, frees key from any holder and reports whether it was held; see
// [holdfast.Operator]. It costs one round trip to each node, at the same time.
func (l *Locker) ForceUnlock(ctx context.Context, key string) (held bool, err error) {
	return l.engine.ForceUnlock(ctx, key)
}

// Nodes, for operators, returns the state of all nodes, in the order of the clients. It changes
// no lock and no vote. A node that does not answer within a second, or within [WithNodeTimeout] if that is
// longer, has an error. It costs up to three round trips to each node, on a connection of its own.
func (l *Locker) Nodes(ctx context.Context) []holdfast.NodeStatus { return l.quorum.Nodes(ctx) }

// Close releases what is held, ends leases and waits with ErrClosed, and waits for the
// locker's goroutines; see [holdfast.Operator]. ErrUnknown also names keys that only some nodes
// may still have, and one of these nodes: another may have the lock. It closes the clients that
// [Open] made.
func (l *Locker) Close() error {
	err := l.engine.Close()
	closeAll(l.opened)
	return err
}

// For LockAll and the command, see engine.Of.
func init() { engine.Register(func(l *Locker) *engine.Engine { return l.engine }) }

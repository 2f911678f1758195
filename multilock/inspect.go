package multilock

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast"
)

// Inspect returns the holder of key on a quorum of nodes; see [holdfast.Operator]. It costs
// one round trip to each node, at the same time.
func (l *Locker) Inspect(ctx context.Context, key string) (holdfast.Status, error) {
	return l.engine.Inspect(ctx, key, l.quorum.Inspect)
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
	return l.engine.Force(ctx, key, l.quorum.ForceRelease)
}

// Nodes, for operators, returns the state of all nodes, in the order of the clients. It changes
// nothing. A node that does not answer within a second has an error. It costs up to three round
// trips to each node, on a connection of its own.
func (l *Locker) Nodes(ctx context.Context) []holdfast.NodeStatus { return l.quorum.Nodes(ctx) }

package multilock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// Inspect returns who holds key on a quorum of nodes; see [holdfast.Locker]. One round trip to each node, at the same time.
func (l *Locker) Inspect(ctx context.Context, key string) (Status, error) {
	return engine.Call(ctx, l.engine, "inspect", key, func(context.Context) (Status, error) {
		said, err := l.quorum.Inspect(key)
		return engine.StatusOf(said, 0), err
	})
}

// ForceUnlock frees key, whoever holds it, and reports whether it was held; it is for
// operators, see [holdfast.Locker]. One round trip to each node, at the same time.
func (l *Locker) ForceUnlock(ctx context.Context, key string) (held bool, err error) {
	return l.engine.Force(ctx, key, func(context.Context) (bool, error) {
		return l.quorum.ForceRelease(key)
	})
}

// NodeStatus is how one node stands.
type NodeStatus struct {
	Node string        // its address, without credentials
	Vote bool          // it votes
	Left time.Duration // until it votes, if it was started, emptied or promoted a short time ago
	Err  error         // why it does not vote, whatever time passes
}

// Nodes asks all nodes how they stand, in the order of the clients. It is for
// operators, and changes nothing. A node that does not answer within a second has
// an error. Up to three round trips to each node, on a connection of its own.
func (l *Locker) Nodes(ctx context.Context) []NodeStatus {
	said := l.quorum.Nodes(ctx)
	all := make([]NodeStatus, len(said))
	for i, s := range said {
		all[i] = NodeStatus(s)
	}
	return all
}

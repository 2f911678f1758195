package multilock

import (
	"github.com/holdfast-go/holdfast/internal/quorum"
)

// QuorumError says for every node what it said, where too few said yes. It is
// found by errors.As. It matches ErrNotAcquired only where most of the nodes
// that answered have the lock held by others, and those that answered could have
// made a quorum; else it is ErrUnavailable or ErrUnknown, or none of them where
// no quorum is left that does not refuse.
type QuorumError = quorum.Error

// NodeError is what one node said, with its address: nil for yes, ErrHeld, or
// why it said neither.
type NodeError = quorum.NodeError

// ErrHeld is what a node says on which another holds the lock.
var ErrHeld = quorum.ErrHeld

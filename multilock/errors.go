package multilock

import (
	"github.com/holdfast-go/holdfast/internal/hall"
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

// The errors of this package, for errors.Is. "Held by another", "Redis failed"
// and "outcome unknown" are three different errors. A context that ended a call is joined to what the call
// knew. What else waiting cannot cure (a wrong password, a missing right, a bad
// argument) matches none of them and is returned as it is.
var (
	// ErrNotAcquired: somebody else has the lock.
	ErrNotAcquired = hall.ErrNotAcquired
	// ErrLost: the lease ended before it was unlocked: Redis no longer knows it,
	// or did not answer until its deadline, or its cap was reached. Another may
	// have the lock; what was done under it after Deadline is not protected.
	ErrLost = hall.ErrLost
	// ErrReleased: the entry was unlocked before.
	ErrReleased = hall.ErrReleased
	// ErrWrongType: the key holds something that is not a lock of this package. It was
	// left as it is.
	ErrWrongType = hall.ErrWrongType
	// ErrClosed: the locker was closed.
	ErrClosed = hall.ErrClosed
	// ErrQueueFull: as many wait on the key as WithMaxWaiters allows.
	ErrQueueFull = hall.ErrQueueFull
	// ErrUnavailable: Redis failed; the lock was surely not acquired. (What an
	// earlier attempt of the same wait may have left is being undone.)
	ErrUnavailable = hall.ErrUnavailable
	// ErrUnknown: no answer came, so the outcome is not known. An acquire is
	// being undone in the background; a release goes on in the background for up
	// to a lease, after which the key is free in any case.
	ErrUnknown = hall.ErrUnknown
)

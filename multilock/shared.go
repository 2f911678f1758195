package multilock

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/quorum"
)

// What all kinds share is in package holdfast.
type (
	Lease      = holdfast.Lease
	LockOption = holdfast.LockOption
	Status     = holdfast.Status
)

// QuorumError is how a call fails for which too few nodes said yes: what each of them said.
type QuorumError = holdfast.QuorumError

// NodeError is what one node said, in a [QuorumError].
type NodeError = holdfast.NodeError

// ErrHeld is what a node says, in a [QuorumError], on which another holds the lock.
var ErrHeld = quorum.ErrHeld

// The errors of all kinds are those of package holdfast.
var (
	ErrNotAcquired = holdfast.ErrNotAcquired
	ErrLost        = holdfast.ErrLost
	ErrReleased    = holdfast.ErrReleased
	ErrWrongType   = holdfast.ErrWrongType
	ErrClosed      = holdfast.ErrClosed
	ErrQueueFull   = holdfast.ErrQueueFull
	ErrUnavailable = holdfast.ErrUnavailable
	ErrUnknown     = holdfast.ErrUnknown
)

// FixedLease is [holdfast.FixedLease].
func FixedLease(d time.Duration) LockOption { return holdfast.FixedLease(d) }

// MaxHold is [holdfast.MaxHold].
func MaxHold(d time.Duration) LockOption { return holdfast.MaxHold(d) }

// WaitAtMost is [holdfast.WaitAtMost].
func WaitAtMost(d time.Duration) LockOption { return holdfast.WaitAtMost(d) }

package multilock

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/quorum"
)

// Package holdfast documents these.
type (
	Lease      = holdfast.Lease
	LockOption = holdfast.LockOption
	Status     = holdfast.Status
)

// QuorumError is the error of a call to which too few nodes said yes.
type QuorumError = holdfast.QuorumError

// NodeError is the answer of one node, in a [QuorumError].
type NodeError = holdfast.NodeError

// ErrHeld, in a [QuorumError], is the answer of a node on which another holds the lock.
var ErrHeld = quorum.ErrHeld

// Package holdfast documents these errors.
var (
	ErrNotAcquired     = holdfast.ErrNotAcquired
	ErrLost            = holdfast.ErrLost
	ErrReleased        = holdfast.ErrReleased
	ErrWrongType       = holdfast.ErrWrongType
	ErrOldServer       = holdfast.ErrOldServer
	ErrInvalidArgument = holdfast.ErrInvalidArgument
	ErrClosed          = holdfast.ErrClosed
	ErrQueueFull       = holdfast.ErrQueueFull
	ErrUnavailable     = holdfast.ErrUnavailable
	ErrUnknown         = holdfast.ErrUnknown
)

// FixedLease is [holdfast.FixedLease].
func FixedLease(d time.Duration) LockOption { return holdfast.FixedLease(d) }

// MaxHold is [holdfast.MaxHold].
func MaxHold(d time.Duration) LockOption { return holdfast.MaxHold(d) }

// WaitAtMost is [holdfast.WaitAtMost].
func WaitAtMost(d time.Duration) LockOption { return holdfast.WaitAtMost(d) }

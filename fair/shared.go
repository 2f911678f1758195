package fair

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// Package holdfast documents these.
type (
	Lease      = holdfast.Lease
	LockOption = holdfast.LockOption
	Status     = holdfast.Status
)

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
	ErrNotReplicated   = holdfast.ErrNotReplicated
)

// FixedLease is [holdfast.FixedLease].
func FixedLease(d time.Duration) LockOption { return holdfast.FixedLease(d) }

// MaxHold is [holdfast.MaxHold].
func MaxHold(d time.Duration) LockOption { return holdfast.MaxHold(d) }

// WaitAtMost is [holdfast.WaitAtMost].
func WaitAtMost(d time.Duration) LockOption { return holdfast.WaitAtMost(d) }

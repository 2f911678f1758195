package holdfast

import (
	"context"
	"time"
)

// Locker is what every kind of lock does: the Lockers of rlock, fair and multilock satisfy
// it. Their methods say what is particular to the kind: the order of waiters, and the
// costs. A double for tests makes its leases with [NewLease].
type Locker interface {
	// Do locks key as Lock does, runs f and unlocks, also when f panics or ends its
	// goroutine. The context that f gets is bound to the lease, see [Lease.Bind].
	//
	// Do returns the error of Lock if the lock was not acquired; f was not run then. Else
	// it returns f's error, joined with that of [Lease.Unlock] if there is one: ErrLost
	// says that the lock was lost while f ran.
	Do(ctx context.Context, key string, f func(context.Context) error, opts ...LockOption) error

	// Lock waits until it has key or ctx ends. A deadline of ctx bounds the wait, not the
	// hold. If ctx is bound to a living lease of this locker on key, Lock enters that lease
	// once more instead. The wait rides out restarts of Redis.
	//
	// On failure nothing is held, and what an unanswered call may have done is being
	// undone. Errors: the context's, joined to ErrNotAcquired, ErrUnavailable or ErrUnknown
	// as far as known; ErrUnavailable or ErrUnknown when Redis was away for longer than
	// WithMaxOutage; ErrQueueFull; ErrClosed; on a bound context ErrLost, ErrReleased or
	// ErrClosed if its lease has ended; and at once what waiting cannot cure: bad
	// arguments, refusals by Redis.
	//
	// If the connection was lost just before, a call may outlast ctx by the time that the
	// client takes to dial.
	Lock(ctx context.Context, key string, opts ...LockOption) (*Lease, error)

	// TryLock makes one attempt. It makes no call to Redis where this locker is known to
	// hold key, to ask for it or to wait for it: that is ErrNotAcquired, or the error of
	// a wait that Redis does not answer. As Lock does, it enters once more a lease that ctx
	// is bound to.
	//
	// Errors as for Lock; ErrNotAcquired if another has the lock, ErrUnavailable if Redis
	// did not take the call, ErrUnknown if it did not answer.
	TryLock(ctx context.Context, key string, opts ...LockOption) (*Lease, error)

	// TryLockFor is Lock with a wait of at most the given time, after which it fails with
	// ErrNotAcquired, or with ErrUnavailable or ErrUnknown if Redis is away. A wait of zero
	// is TryLock; a negative one is refused.
	TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...LockOption) (*Lease, error)

	// Inspect returns who holds key. ErrUnavailable or ErrUnknown if Redis does not
	// answer; refusals as they are; ErrClosed.
	Inspect(ctx context.Context, key string) (Status, error)

	// ForceUnlock frees key, whoever holds it, and reports whether it was held. It is for
	// operators: a lease that this locker had when it was called ends at once. Other
	// holders learn of it at their next renewal, with a fixed lease not at all, and believe
	// in their lease until then. What is at key and is no lock, an application's data or a
	// read/write lock of Redisson's, stays as it is and is an error. ErrUnknown: the key
	// may have been freed or not. Other errors as for Inspect.
	ForceUnlock(ctx context.Context, key string) (held bool, err error)

	// Close releases what is held, ends leases and waits with ErrClosed, and waits for the
	// locker's goroutines. It is bounded also when Redis does not answer: ErrUnknown says
	// that something could not be released, which frees itself within its lease. A second
	// Close does nothing.
	Close() error
}

// Status is who holds a key at one moment, as Redis sees it.
type Status struct {
	Held      bool
	Owner     string        // of any client, also of Redisson; "" if free
	Entries   int           // levels of nesting; 0 if free
	Remaining time.Duration // until the lease ends if it is not renewed; negative: it has no end
	Waiting   int           // of fair: length of the queue, with the dead that were not yet passed over
}

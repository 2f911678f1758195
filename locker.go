package holdfast

import (
	"context"
	"time"
)

// Locker is what every kind of lock does; the Lockers of rlock, fair and multilock
// satisfy it. Their methods say what holds for their kind. A double for tests makes its
// leases with [NewLease].
type Locker interface {
	// Do locks key, runs f with a context that is bound to the lease, and unlocks.
	Do(ctx context.Context, key string, f func(context.Context) error, opts ...LockOption) error
	// Lock waits until it has key or ctx ends.
	Lock(ctx context.Context, key string, opts ...LockOption) (*Lease, error)
	// TryLock makes one attempt; ErrNotAcquired if another has the lock.
	TryLock(ctx context.Context, key string, opts ...LockOption) (*Lease, error)
	// TryLockFor is Lock with a wait of at most the given time, then ErrNotAcquired.
	TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...LockOption) (*Lease, error)
	// Inspect returns who holds key.
	Inspect(ctx context.Context, key string) (Status, error)
	// ForceUnlock frees key, whoever holds it, and reports whether it was held.
	ForceUnlock(ctx context.Context, key string) (held bool, err error)
	// Close releases what is held, and ends waits with ErrClosed.
	Close() error
}

// Status is who holds a key at one moment, as Redis sees it.
type Status struct {
	Held      bool
	Owner     string        // of whatever client, Redisson's too; "" if free
	Entries   int           // levels of nesting; 0 if free
	Remaining time.Duration // until the lease ends if it is not renewed; negative: it has no end
	Waiting   int           // of fair: length of the queue, with those who have died in it and were not yet passed over
}

package rlock

import (
	"context"
	"iter"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/single"
)

// Locker locks keys on one Redis, a Sentinel set or a Redis Cluster. Redis and the other lockers see
// it as one client. Safe for concurrent use. One locker per process and Redis is enough.
type Locker struct{ engine *engine.Engine }

// New returns a locker on the Redis of client, of any mode. The caller keeps the client,
// may share it, and closes it after the locker. New makes no call to Redis.
//
// It fails on a nil client, and on an option that is out of range or of another kind, which the
// error names.
func New(client rueidis.Client, opts ...holdfast.Option) (*Locker, error) {
	c, err := single.Configure(client, "rlock", nil, opts)
	if err != nil {
		return nil, err
	}
	return &Locker{single.NewRLock(client, c)}, nil
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
// A free key costs one round trip. A wait for another process costs the subscription and
// its end, one attempt once that is live, one for each release that is this process's turn, and
// one each time the holder's lease should have ended.
func (l *Locker) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.Lock(ctx, key, opts...)
}

// TryLock makes one attempt: one round trip, or none if this locker has key or wants it;
// see [holdfast.Locker].
func (l *Locker) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLock(ctx, key, opts...)
}

// TryLockFor is [Locker.Lock] with a wait of at most the given time.
func (l *Locker) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLockFor(ctx, key, wait, opts...)
}

// Inspect returns the holder of key; see [holdfast.Operator]. It costs one round trip.
func (l *Locker) Inspect(ctx context.Context, key string) (holdfast.Status, error) {
	return l.engine.Inspect(ctx, key)
}

// Locks returns the held locks whose keys begin with prefix; see [holdfast.Operator]. It costs
// one round trip for each 1000 names that Redis has, and one for each 256 that may be locks.
func (l *Locker) Locks(ctx context.Context, prefix string) iter.Seq2[holdfast.Status, error] {
	return l.engine.Locks(ctx, prefix)
}

// ForceUnlock, for operators, frees key from any holder and reports whether it was held; see
// [holdfast.Operator]. It costs one round trip.
func (l *Locker) ForceUnlock(ctx context.Context, key string) (held bool, err error) {
	return l.engine.ForceUnlock(ctx, key)
}

// Close releases what is held, ends leases and waits with ErrClosed, and waits for the
// locker's goroutines; see [holdfast.Operator].
func (l *Locker) Close() error { return l.engine.Close() }

// For LockAll and the command, see engine.Of.
func init() { engine.Register(func(l *Locker) *engine.Engine { return l.engine }) }

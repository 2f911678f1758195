package rwlock

import (
	"context"
	"iter"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/single"
)

// Locker locks keys for writers on one Redis, a Sentinel set or a Redis Cluster. Safe for
// concurrent use. One locker per process and Redis is enough: readers of one locker share a
// hold.
type Locker struct {
	engine  *engine.Engine // of the writers
	readers *RLocker
}

// RLocker locks the keys of its Locker for readers. Safe for concurrent use.
type RLocker struct{ engine *engine.Engine }

// New returns a locker on the Redis of client, of any mode. The caller keeps the client,
// may share it, and closes it after the locker. New makes no call to Redis.
//
// It fails on a nil client, and on an option that is out of range or of another kind, which the
// error names.
func New(client rueidis.Client, opts ...holdfast.Option) (*Locker, error) {
	c, err := single.Configure(client, "rwlock", nil, opts)
	if err != nil {
		return nil, err
	}
	readers, writers := single.NewRWLock(client, c)
	return &Locker{writers, &RLocker{readers}}, nil
}

// RLocker returns the locker for readers, always the same one.
func (l *Locker) RLocker() *RLocker { return l.readers }

// Do locks key for a writer, runs f with a context that is bound to the lease, and unlocks; see
// [holdfast.Locker]. Errors as for [Locker.Lock].
func (l *Locker) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) error {
	return l.engine.Do(ctx, key, f, opts...)
}

// Lock waits until it has key for a writer or ctx ends; see [holdfast.Locker]. On a context bound to
// a live read lease of this Locker on key it returns [holdfast.ErrUpgrade] immediately.
//
// A free key costs one round trip. A wait costs the subscription and its end, an attempt once that
// is live and after each message of a release, and one each second.
func (l *Locker) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.Lock(ctx, key, opts...)
}

// TryLock makes one attempt: one round trip, or none if this locker writes key or wants to; see
// [holdfast.Locker]. It fails while readers that have waited for a writer are next.
func (l *Locker) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLock(ctx, key, opts...)
}

// TryLockFor is [Locker.Lock] with a wait of at most the given time.
func (l *Locker) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLockFor(ctx, key, wait, opts...)
}

// Do locks key for a reader, runs f with a context that is bound to the lease, and unlocks; see
// [holdfast.Locker].
func (l *RLocker) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) error {
	return l.engine.Do(ctx, key, f, opts...)
}

// Lock waits until it has key for a reader or ctx ends; see [holdfast.Locker]. A context bound to a
// write lease of the same Locker on key gets the read lock beside it.
//
// As long as a reader of this locker has key, one call in each [holdfast.WithLocalHandover] asks
// Redis whether a writer waits, and the others make none. Otherwise it costs the same as a writer's
// Lock.
func (l *RLocker) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.Lock(ctx, key, opts...)
}

// TryLock makes one attempt: at most two round trips; see [holdfast.Locker]. It fails while a writer
// has key or waits for it, but within [holdfast.WithLocalHandover] it joins a reader of this locker
// without asking for waiting writers.
func (l *RLocker) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLock(ctx, key, opts...)
}

// TryLockFor is [RLocker.Lock] with a wait of at most the given time.
func (l *RLocker) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLockFor(ctx, key, wait, opts...)
}

// Inspect returns who holds key: the writer, or else one of the readers, and how many holds readers
// have; see [holdfast.Operator]. It costs one round trip.
func (l *Locker) Inspect(ctx context.Context, key string) (holdfast.Status, error) {
	return l.engine.Inspect(ctx, key)
}

// Locks returns the held read/write locks whose keys begin with prefix; see [holdfast.Operator].
// It costs one round trip for each 1000 names that Redis has, and one for each 256 that may be
// locks.
func (l *Locker) Locks(ctx context.Context, prefix string) iter.Seq2[holdfast.Status, error] {
	return l.engine.Locks(ctx, prefix)
}

// ForceUnlock, for operators, frees key from its writer and all readers, and reports whether it was
// held; see [holdfast.Operator]. It costs one round trip.
func (l *Locker) ForceUnlock(ctx context.Context, key string) (held bool, err error) {
	return l.engine.ForceUnlock(ctx, key)
}

// Close releases what readers and writers hold, ends leases and waits with ErrClosed, and waits
// for the locker's goroutines; see [holdfast.Operator].
func (l *Locker) Close() error { return l.engine.Close() }

// For LockAll and the command, see engine.Of.
func init() {
	engine.Register(func(l *Locker) *engine.Engine { return l.engine })
	engine.Register(func(l *RLocker) *engine.Engine { return l.engine })
}

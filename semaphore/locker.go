package semaphore

import (
	"context"
	"iter"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/single"
)

// MaxPermits is how many permits a key may have.
const MaxPermits = 10_000

// Locker takes permits of keys on one Redis, a Sentinel set or a Redis Cluster. Redis and the other
// lockers see it as one client. Safe for concurrent use. One locker per process, Redis and number
// of permits is enough.
type Locker struct {
	engine  *engine.Engine
	backend *single.Semaphore
}

// New returns a locker for keys with n permits, 1 to [MaxPermits], on the Redis of client, of any
// mode. The caller keeps the client, may share it, and closes it after the locker. New makes no call
// to Redis.
//
// It fails on a nil client, on an n out of that range, and on an option that is out of range or of
// another kind, which the error names. [holdfast.WithFencing] is refused, too: fences order successive
// holders, and those of a semaphore hold at the same time.
func New(client rueidis.Client, n int, opts ...holdfast.Option) (*Locker, error) {
	c, err := single.Configure(client, "semaphore", nil, opts)
	if err == nil && c.Fencing {
		err = errs.Invalid("semaphore: New: WithFencing: fences order holders one after another, and these hold at once")
	}
	if err == nil {
		if bad := check.Permits(n); bad != nil {
			err = errs.Invalid("semaphore: New: %w", bad)
		}
	}
	if err != nil {
		return nil, err
	}
	e, backend := single.NewSemaphore(client, c, n)
	return &Locker{engine: e, backend: backend}, nil
}

// Do takes a permit of key, runs f with a context that is bound to the lease, and gives the permit
// back; see [holdfast.Locker].
func (l *Locker) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) error {
	return l.engine.Do(ctx, key, f, opts...)
}

// Lock waits until it has a permit of key or ctx ends; see [holdfast.Locker]. If others use key with
// another number of permits, it fails immediately with a *[holdfast.PermitsError].
//
// Waiters of this locker are served roughly in the order in which they came. Between processes there is
// no order, and one that is much nearer to Redis than another may have far more turns.
//
// A free permit costs one round trip. A wait costs one attempt before it; and for all waiters of
// key together the subscription and its end, up to three attempts for each permit that they get, and
// one each time that a lease should have ended.
func (l *Locker) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.Lock(ctx, key, opts...)
}

// TryLock makes one attempt: one round trip, or none if others of this locker wait for key; see
// [holdfast.Locker] and [Locker.Lock].
func (l *Locker) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLock(ctx, key, opts...)
}

// TryLockFor is [Locker.Lock] with a wait of at most the given time.
func (l *Locker) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.engine.TryLockFor(ctx, key, wait, opts...)
}

// Resize, for operators, sets how many permits key has, 1 to [MaxPermits]. From then on the number
// given to New counts for no locker, of any program, until nobody has used key for a week. More
// permits let waiters go on; with fewer, holders keep what they have, and others get a permit when
// enough have given theirs back. Errors are those of Inspect. ErrUnknown: the number may or may not
// be set; Resize may be called again. It costs one round trip.
func (l *Locker) Resize(ctx context.Context, key string, n int) error {
	_, err := engine.OnKey(ctx, l.engine, "resize", key, func(ctx context.Context, name string) (struct{}, error) {
		return struct{}{}, l.backend.Resize(ctx, name, n)
	})
	return err
}

// Inspect returns how many permits key has, who holds them, and how many wait in this locker; see
// [holdfast.Operator]. It costs one round trip.
func (l *Locker) Inspect(ctx context.Context, key string) (holdfast.Status, error) {
	return l.engine.Inspect(ctx, key)
}

// Locks returns the semaphores with taken permits whose keys begin with prefix; see
// [holdfast.Operator]. It costs one round trip for each 1000 names that Redis has, and one for each
// 256 that may be semaphores.
func (l *Locker) Locks(ctx context.Context, prefix string) iter.Seq2[holdfast.Status, error] {
	return l.engine.Locks(ctx, prefix)
}

// ForceUnlock, for operators, takes back all permits of key and reports whether any was taken; see
// [holdfast.Operator]. A number that Resize has set stays. It costs one round trip.
func (l *Locker) ForceUnlock(ctx context.Context, key string) (held bool, err error) {
	return l.engine.ForceUnlock(ctx, key)
}

// Close gives back what is held, ends leases and waits with ErrClosed, and waits for the locker's
// goroutines; see [holdfast.Operator].
func (l *Locker) Close() error { return l.engine.Close() }

// For LockAll and the command, see engine.Of.
func init() { engine.Register(func(l *Locker) *engine.Engine { return l.engine }) }

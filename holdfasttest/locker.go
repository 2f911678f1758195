// Package holdfasttest has doubles of locks for the tests of code that takes a
// [holdfast.Locker]: [New], [NewRWLock] and [NewSemaphore]. A double keeps its locks in memory: there
// is no Redis, no connection and no goroutine, and time is that of the test, also in a bubble of
// testing/synctest.
//
// It passes the contract of its lock kind, where that is about one process. Waiters are served in the
// order in which they came, over all lockers of one memory. [Locker.Hold], [Locker.Lose] and
// [Locker.Outage] simulate what other processes and Redis do.
//
// The page docs/testing.md shows how to use it, and says where it is simpler than a real lock.
package holdfasttest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Locker is a [holdfast.Locker] in memory. Safe for concurrent use. In a bubble of
// testing/synctest, make it there.
type Locker struct {
	settings holdfast.Settings // immutable
	memory   *memory           // immutable
	id       int64             // immutable
	reads    bool              // for readers of an RWLock; immutable
	half     *Locker           // the other one of an RWLock; otherwise nil; immutable
	owners   int64             // guarded by memory.mu
	closed   bool              // guarded by memory.mu
}

// New returns a locker with a memory of its own. Of the options of package holdfast it has
// WithLease, WithFencing, WithMaxHold, WithMaxWaiters and WithMaxOutage, and refuses all others.
// It fails with [holdfast.ErrInvalidArgument] on a bad option.
func New(opts ...holdfast.Option) (*Locker, error) {
	return newOf("holdfasttest: New", &memory{permits: 1}, opts)
}

// NewSemaphore is New for keys that up to n may hold at the same time, like those of package
// semaphore. It refuses WithFencing.
func NewSemaphore(n int, opts ...holdfast.Option) (*Locker, error) {
	if err := check.Permits(n); err != nil {
		return nil, errs.Invalid("holdfasttest: NewSemaphore: %w", err)
	}
	return newOf("holdfasttest: NewSemaphore", &memory{permits: n, semaphore: true}, opts)
}

func newOf(function string, m *memory, opts []holdfast.Option) (*Locker, error) {
	s := holdfast.Settings{Lease: holdfast.DefaultLease}
	if err := check.Apply(function, &s, opts); err != nil {
		return nil, err
	}
	if err := check.Settings(&s); err != nil {
		return nil, errs.Invalid("holdfasttest: %w", err)
	}
	for _, o := range []struct {
		name string
		set  bool
	}{
		{"WithFencing", m.semaphore && s.Fencing}, {"WithPrefix", s.Prefix != ""}, {"WithLabel", s.Label != ""}, {"WithLocalHandover", s.LocalHandover != 0},
		{"WithFenceExpiry", s.FenceExpiry != nil}, {"WithLogger", s.Logger != nil}, {"WithObserver", s.Observer != nil},
		{"WithReplicas", s.Replicas != 0 || s.ReplicaTimeout != 0}, {"WithShardedPubSub", s.ShardedPubSub != nil},
	} {
		if o.set {
			return nil, errs.Invalid("%s: the double has no %s", function, o.name)
		}
	}
	m.keys = make(map[string]*keyState)
	return newLocker(s, m), nil
}

var ids atomic.Int64

func newLocker(s holdfast.Settings, m *memory) *Locker {
	return &Locker{settings: s, memory: m, id: ids.Add(1)}
}

// Another returns a locker with the same memory and options, like that of another process
// on the same Redis.
func (l *Locker) Another() *Locker {
	other := newLocker(l.settings, l.memory)
	other.reads = l.reads
	return other
}

// Do implements [holdfast.Locker].
func (l *Locker) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) (err error) {
	if f == nil {
		return errs.Of("lock", key, errs.Invalid("Do: function is nil"))
	}
	lease, err := l.Lock(ctx, key, opts...)
	if err != nil {
		return err
	}
	defer func() {
		err = errs.OfDo(err, lease.Unlock(ctx))
	}()
	return f(lease.Bind(ctx))
}

// Lock implements [holdfast.Locker].
func (l *Locker) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.lock(ctx, key, -1, opts)
}

// TryLock implements [holdfast.Locker].
func (l *Locker) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.lock(ctx, key, 0, opts)
}

// TryLockFor implements [holdfast.Locker].
func (l *Locker) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	if wait < 0 {
		return nil, errs.Of("lock", key, errs.Invalid("TryLockFor: wait of %v is negative", wait))
	}
	return l.lock(ctx, key, wait, opts)
}

// lock waits at most the given time; negative: as the options say, or without limit.
func (l *Locker) lock(ctx context.Context, key string, wait time.Duration, opts []holdfast.LockOption) (_ *holdfast.Lease, err error) {
	defer func() { err = errs.Of("lock", key, err) }()
	if err := check.Key(key); err != nil {
		return nil, err
	}
	o, err := check.Options(opts, l.settings.MaxHold, &wait)
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, wait, errs.ErrWaitOver)
		defer cancel()
		ctx = limited
	}
	w, err := l.memory.ask(ctx, l, key, o, wait != 0)
	if err != nil {
		return nil, err
	}
	served := false
	defer func() {
		if !served { // OnPlace panics or ends its goroutine
			_, _ = l.memory.withdraw(ctx, w)
		}
	}()
	for {
		select {
		case place := <-w.places:
			if o.OnPlace != nil {
				o.OnPlace(place)
			}
		case r := <-w.ready:
			served = true
			return r.lease, r.err
		case <-ctx.Done():
			served = true
			return l.memory.withdraw(ctx, w)
		}
	}
}

package fair

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// Locker locks keys on one Redis. It is one client in the eyes of Redis and of
// the other lockers. Safe for concurrent use; one for each process and Redis is
// enough.
type Locker struct {
	engine     *engine.Engine
	queues     *scripts.Fair
	subscriber *pubsub.Subscriber
}

// New returns a locker on the Redis of client, which stays the caller's: it is
// shared, and is to be closed after the locker. New makes no call to Redis.
//
// It fails on a nil client, on a client of a Redis Cluster (not supported yet),
// and on an option out of range, which the error names.
func New(client rueidis.Client, opts ...Option) (*Locker, error) {
	if client == nil {
		return nil, errors.New("fair: New: client is nil")
	}
	if client.Mode() == rueidis.ClientModeCluster {
		return nil, errors.New("fair: New: client of a Redis Cluster: not supported yet")
	}
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	node := scripts.NewNode(client)
	queues := scripts.NewFair(node, c.settings())
	subscriber := pubsub.New(client, c.engine.Log)
	c.engine.Calls, c.engine.EvictionPolicy = engine.NewCalls(c.engine.Lease, node.Server), node.EvictionPolicy
	backend := newOrdered(queues, node, subscriber, c.engine.Calls)
	return &Locker{engine: engine.NewQueued(backend, c.engine), queues: queues, subscriber: subscriber}, nil
}

// Do locks key, runs f and unlocks, also when f panics or ends its goroutine.
// The lock is waited for as by [Locker.Lock].
//
// The context that f gets is bound to the lease: it re-enters the lock where it
// is passed to a call of this locker on the same key, and is cancelled, with
// the reason as its cause, when the lease ends.
//
// Do returns the error of Lock if the lock was not acquired; f was not run then.
// Else it returns f's error, joined with that of [Lease.Unlock] if there is one:
// ErrLost says that the lock was lost while f ran.
func (l *Locker) Do(ctx context.Context, key string, f func(context.Context) error, opts ...LockOption) error {
	return l.engine.Do(ctx, key, f, opts...)
}

// Lock waits until it has key or ctx ends. A deadline of ctx bounds the wait,
// not the hold. If ctx is bound to a living lease of this locker on key (see
// [Lease.Bind]), Lock enters that lease once more instead.
//
// Waiters of all processes are served in the order in which they entered the
// queue in Redis; those of one locker enter it in the order in which they came,
// give or take those who come at the same moment. The wait rides out restarts of
// Redis; a waiter whose place is lost then enters again, at the end.
//
// On failure nothing is held, and what an unanswered call may have done is being
// undone. Errors: the context's, joined to ErrNotAcquired, ErrUnavailable or
// ErrUnknown as far as known; ErrUnavailable or ErrUnknown when Redis was away
// for longer than [WithMaxOutage]; ErrQueueFull; ErrClosed; on a bound context
// ErrLost, ErrReleased or ErrClosed if its lease has ended; and at once what
// waiting cannot cure: bad arguments, refusals by Redis.
//
// A call may outlast ctx by the time that the client takes to dial, if the
// connection was lost just before.
//
// A free key for which nobody waits costs one round trip. A wait costs one to
// enter, the subscription and its end for all waiters of a key together, and a
// heartbeat for up to 50 keys of the locker five times in [WithStale]; one more round
// trip at its end if it took longer than half of [WithFirstLease] or of the lease,
// or for a fixed or capped lease.
func (l *Locker) Lock(ctx context.Context, key string, opts ...LockOption) (*Lease, error) {
	return l.engine.Lock(ctx, key, opts...)
}

// TryLock makes one attempt, which takes key only if it is free and nobody who
// lives waits for it: one round trip, and none where this locker is known
// to hold key, to ask for it or to wait for it: ErrNotAcquired then, or what a
// wait that Redis does not answer knows. As Lock, it re-enters the
// lease that ctx is bound to.
//
// Errors as for [Locker.Lock]; ErrNotAcquired if another has the lock or waits for it,
// ErrUnavailable if Redis did not take the call, ErrUnknown if it did not answer.
func (l *Locker) TryLock(ctx context.Context, key string, opts ...LockOption) (*Lease, error) {
	return l.engine.TryLock(ctx, key, opts...)
}

// TryLockFor is Lock with a wait of at most the given time, after which it fails
// with ErrNotAcquired (or ErrUnavailable or ErrUnknown if Redis is away). A wait
// of zero is TryLock; a negative one is refused.
func (l *Locker) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...LockOption) (*Lease, error) {
	return l.engine.TryLockFor(ctx, key, wait, opts...)
}

// Close releases what is held, ends waits with ErrClosed, and waits for the
// locker's goroutines. Leases end with ErrClosed. It is bounded also when Redis
// does not answer: ErrUnknown says that something could not be released, which
// frees itself within its lease. A second Close does nothing.
func (l *Locker) Close() error {
	err := l.engine.Close()
	l.subscriber.Close()
	return err
}

package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) {
	locktest.RunChild(door)
	goleak.VerifyTestMain(m)
}

// door shows rlock to the conformance suite.
var door = locktest.Door{Name: "rlock", New: func(client rueidis.Client, o locktest.Options) (locktest.Locker, error) {
	var opts []rlock.Option
	if o.Lease != 0 {
		opts = append(opts, rlock.WithLease(o.Lease))
	}
	if o.Handover != nil {
		opts = append(opts, rlock.WithLocalHandover(*o.Handover))
	}
	if o.Fencing {
		opts = append(opts, rlock.WithFencing())
	}
	if o.MaxWaiters != 0 {
		opts = append(opts, rlock.WithMaxWaiters(o.MaxWaiters))
	}
	if o.MaxOutage != nil {
		opts = append(opts, rlock.WithMaxOutage(*o.MaxOutage))
	}
	if o.Logger != nil {
		opts = append(opts, rlock.WithLogger(o.Logger))
	}
	l, err := rlock.New(client, opts...)
	if err != nil {
		return nil, err
	}
	return locker{l}, nil
}}

type locker struct{ *rlock.Locker }

func calls(cs []locktest.Call) (opts []rlock.LockOption) {
	for _, c := range cs {
		if c.FixedLease != 0 {
			opts = append(opts, rlock.FixedLease(c.FixedLease))
		}
		if c.MaxHold != 0 {
			opts = append(opts, rlock.MaxHold(c.MaxHold))
		}
	}
	return opts
}

// lease keeps a nil *rlock.Lease from becoming a non-nil interface.
func lease(l *rlock.Lease, err error) (locktest.Lease, error) {
	if l == nil {
		return nil, err
	}
	return l, err
}

func (l locker) Do(ctx context.Context, key string, f func(context.Context) error, c ...locktest.Call) error {
	return l.Locker.Do(ctx, key, f, calls(c)...)
}

func (l locker) Lock(ctx context.Context, key string, c ...locktest.Call) (locktest.Lease, error) {
	return lease(l.Locker.Lock(ctx, key, calls(c)...))
}

func (l locker) TryLock(ctx context.Context, key string, c ...locktest.Call) (locktest.Lease, error) {
	return lease(l.Locker.TryLock(ctx, key, calls(c)...))
}

func (l locker) TryLockFor(ctx context.Context, key string, wait time.Duration, c ...locktest.Call) (locktest.Lease, error) {
	return lease(l.Locker.TryLockFor(ctx, key, wait, calls(c)...))
}

func (l locker) Inspect(ctx context.Context, key string) (locktest.Status, error) {
	st, err := l.Locker.Inspect(ctx, key)
	return locktest.Status(st), err
}

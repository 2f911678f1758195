package fair_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.RunChild(door)
	locktest.MoreAtOnce()
	goleak.VerifyTestMain(m)
}

// door shows fair to the conformance suite.
var door = locktest.Door{Name: "fair", Fair: true, New: func(client rueidis.Client, o locktest.Options) (locktest.Locker, error) {
	var opts []fair.Option
	if o.Lease != 0 {
		opts = append(opts, fair.WithLease(o.Lease))
	}
	if o.Handover != nil {
		opts = append(opts, fair.WithLocalHandover(*o.Handover))
	}
	if o.Fencing {
		opts = append(opts, fair.WithFencing())
	}
	if o.MaxWaiters != 0 {
		opts = append(opts, fair.WithMaxWaiters(o.MaxWaiters))
	}
	if o.MaxOutage != nil {
		opts = append(opts, fair.WithMaxOutage(*o.MaxOutage))
	}
	if o.Stale != 0 {
		opts = append(opts, fair.WithStale(o.Stale))
	}
	if o.FirstLease != 0 {
		opts = append(opts, fair.WithFirstLease(o.FirstLease))
	}
	if o.Logger != nil {
		opts = append(opts, fair.WithLogger(o.Logger))
	}
	l, err := fair.New(client, opts...)
	if err != nil {
		return nil, err
	}
	return locker{l}, nil
}}

type locker struct{ *fair.Locker }

func calls(cs []locktest.Call) (opts []fair.LockOption) {
	for _, c := range cs {
		if c.FixedLease != 0 {
			opts = append(opts, fair.FixedLease(c.FixedLease))
		}
		if c.MaxHold != 0 {
			opts = append(opts, fair.MaxHold(c.MaxHold))
		}
	}
	return opts
}

// lease keeps a nil *fair.Lease from becoming a non-nil interface.
func lease(l *fair.Lease, err error) (locktest.Lease, error) {
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
	return locktest.Status{Held: st.Held, Owner: st.Owner, Entries: st.Entries, Remaining: st.Remaining}, err
}

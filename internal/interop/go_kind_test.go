package interop

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/rlock"
)

// The same values in all lock kinds.
var (
	errLost        = holdfast.ErrLost
	errNotAcquired = holdfast.ErrNotAcquired
)

// lease is what the leases of all lock kinds do.
type lease interface {
	Unlock(ctx context.Context) error
	Bind(ctx context.Context) context.Context
	Done() <-chan struct{}
	Err() error
	Deadline() time.Time
	Fence() int64
	Owner() string
}

// locker is what the lockers of all lock kinds do.
type locker[L lease, O any] interface {
	Lock(ctx context.Context, key string, opts ...O) (L, error)
	TryLock(ctx context.Context, key string, opts ...O) (L, error)
	TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...O) (L, error)
	ForceUnlock(ctx context.Context, key string) (bool, error)
}

// kind is a way to lock, as the agent sees it.
type kind struct {
	acquire func(ctx context.Context, c command) (lease, error)
	force   func(ctx context.Context, key string) (bool, error)
	inspect func(ctx context.Context, key string) (owner string, entries int, err error)
}

func newKind[L lease, O any](l locker[L, O], fixed func(time.Duration) O) kind {
	return kind{
		acquire: func(ctx context.Context, c command) (lease, error) {
			var opts []O
			if c.Lease != nil {
				opts = append(opts, fixed(milliseconds(c.Lease)))
			}
			var got L
			var err error
			switch {
			case c.Op == "lock":
				got, err = l.Lock(ctx, c.Key, opts...)
			case c.Patience == nil:
				got, err = l.TryLock(ctx, c.Key, opts...)
			default:
				got, err = l.TryLockFor(ctx, c.Key, milliseconds(c.Patience), opts...)
			}
			if err != nil {
				return nil, err
			}
			return got, nil
		},
		force: l.ForceUnlock,
	}
}

// administer carries out what needs no thread.
func (d kind) administer(ctx context.Context, c command) answer {
	switch c.Op {
	case "forceUnlock":
		ok, err := d.force(ctx, c.Key)
		if err != nil {
			return failed(c, err)
		}
		return done(c, ok, 0, "")
	case "inspect":
		owner, entries, err := d.inspect(ctx, c.Key)
		if err != nil {
			return failed(c, err)
		}
		return done(c, owner != "", int64(entries), owner)
	}
	return failed(c, fmt.Errorf("op %q", c.Op))
}

// openDoors makes a locker of each kind. Fences are kept for ever, as beside Java.
func openKinds(client rueidis.Client, o options) (map[string]kind, error) {
	kinds := map[string]kind{}
	for kind, more := range map[string][]rlock.Option{
		"plain":  nil,
		"fenced": {rlock.WithFencing(), rlock.WithFenceExpiry(0)},
	} {
		if o.Lease != 0 {
			more = append(more, rlock.WithLease(o.Lease))
		}
		if o.Handover != nil {
			more = append(more, rlock.WithLocalHandover(*o.Handover))
		}
		l, err := rlock.New(client, more...)
		if err != nil {
			return nil, err
		}
		d := newKind[*rlock.Lease](l, rlock.FixedLease)
		d.inspect = func(ctx context.Context, key string) (string, int, error) {
			s, err := l.Inspect(ctx, key)
			return s.Owner, s.Entries, err
		}
		kinds[kind] = d
	}
	for kind, more := range map[string][]fair.Option{
		"fair":        nil,
		"fair fenced": {fair.WithFencing(), fair.WithFenceExpiry(0)},
	} {
		if o.Lease != 0 {
			more = append(more, fair.WithLease(o.Lease))
		}
		if o.Handover != nil {
			more = append(more, fair.WithLocalHandover(*o.Handover))
		}
		if o.Stale != 0 {
			more = append(more, fair.WithStale(o.Stale))
		}
		if o.FirstLease != 0 {
			more = append(more, fair.WithFirstLease(o.FirstLease))
		}
		l, err := fair.New(client, more...)
		if err != nil {
			return nil, err
		}
		d := newKind[*fair.Lease](l, fair.FixedLease)
		d.inspect = func(ctx context.Context, key string) (string, int, error) {
			s, err := l.Inspect(ctx, key)
			return s.Owner, s.Entries, err
		}
		kinds[kind] = d
	}
	return kinds, nil
}

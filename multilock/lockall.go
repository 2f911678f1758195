package multilock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Several keys, all or nothing. LockAll takes them one after another in an order that is
// the same in every process, so calls with overlapping sets never wait for each other in a
// circle, and no waiter is overtaken in a fair queue. The files lockall*.go know no quorum; the
// others of this package are of its Locker.

// DoAll takes all keys as [LockAll] does, runs f with a context that is bound to all of
// their leases, and unlocks, even when f panics or ends its goroutine. If the keys were not
// locked, it returns the error of LockAll; otherwise that of f, joined with the reason of
// each lease that ended before f did. As with Do, a failed release is not an error of
// DoAll.
func DoAll(ctx context.Context, keys KeySet, f func(context.Context) error, opts ...holdfast.LockOption) (err error) {
	if f == nil {
		return errs.Invalid("multilock: DoAll: function is nil")
	}
	s, err := LockAll(ctx, keys, opts...)
	if err != nil {
		return err
	}
	defer func() {
		err = errs.OfDo(err, s.unlock(ctx)...)
	}()
	return f(s.Bind(ctx))
}

// LockAll waits until it has all keys or ctx ends. [holdfast.FixedLease], [holdfast.MaxHold] and
// [holdfast.Label] apply to each of the leases, [holdfast.WaitAtMost] to all waits together;
// [holdfast.OnPlace] is refused. If ctx is bound to leases of some of the keys, LockAll re-enters
// those.
//
// While it waits for a key, it holds the keys before it, and others wait for those. Two
// calls never wait for each other in a circle, whatever their keys and the order of their
// arguments, as long as each key of a Redis goes by one name ([KeySet.OrderName]) in all
// calls. This does not cover a caller that already holds a key that comes later in the
// order, or that takes single locks in an order of its own: take all keys in one call.
//
// After a failure nothing is held. Errors: those of Lock, for the key that failed; ErrLost
// if a lease was lost during the wait for another.
//
// It costs one round trip for each free key, and otherwise the same as single locks. Several keys of an
// rlock locker without fencing cost one together, if all of them are free and, on a Redis Cluster, of one
// slot; if another process holds one, that is one more round trip.
func LockAll(ctx context.Context, keys KeySet, opts ...holdfast.LockOption) (*LeaseSet, error) {
	return lockAll(ctx, keys, forEver, opts)
}

// TryLockAll makes one attempt for each key, in order, and holds nothing if one fails.
// Errors are those of TryLock, for the key that failed.
func TryLockAll(ctx context.Context, keys KeySet, opts ...holdfast.LockOption) (*LeaseSet, error) {
	return lockAll(ctx, keys, 0, opts)
}

// TryLockAllFor is LockAll with a wait of at most the given time for all keys together.
// After that it fails with ErrNotAcquired, or with ErrUnavailable or ErrUnknown if a Redis is
// unavailable. A wait of zero is TryLockAll; a negative one is refused.
func TryLockAllFor(ctx context.Context, keys KeySet, wait time.Duration, opts ...holdfast.LockOption) (*LeaseSet, error) {
	if wait < 0 {
		return nil, errs.Invalid("multilock: TryLockAllFor: wait of %v is negative", wait)
	}
	return lockAll(ctx, keys, wait, opts)
}

const forEver time.Duration = -1

// locking is one call of LockAll, TryLockAll or TryLockAllFor.
type locking struct {
	set   *LeaseSet
	wait  time.Duration         // for all keys; 0: one attempt for each
	until time.Time             // when a bounded wait ends
	opts  []holdfast.LockOption // of each key
}

func lockAll(ctx context.Context, keys KeySet, wait time.Duration, opts []holdfast.LockOption) (*LeaseSet, error) {
	c := locking{set: &LeaseSet{bound: context.Background()}, wait: wait}
	if err := c.choose(opts); err != nil {
		return nil, fmt.Errorf("multilock: %w", err)
	}
	parts, err := keys.inOrder(ctx, c.opts)
	if err != nil {
		return nil, err
	}
	c.until = time.Now().Add(c.wait)
	complete := false
	defer func() {
		if !complete { // on an error, or if a Locker panics
			_ = c.set.Unlock(ctx)
		}
	}()
	for _, p := range parts {
		if ctx, err = c.take(ctx, p); err != nil {
			break
		}
	}
	if lost := c.set.Err(); lost != nil {
		err = lost
	}
	if err != nil {
		return nil, err
	}
	complete = true
	return c.set, nil
}

// choose sets what the options say about all waits together, and leaves the others to each key.
func (c *locking) choose(opts []holdfast.LockOption) error {
	o, err := holdfast.NewLockOptions(opts...)
	if err != nil {
		return err
	}
	if o.OnPlace != nil {
		return errs.Invalid("OnPlace is for the lock of one key")
	}
	if o.WaitAtMost != nil {
		if c.wait != forEver {
			return errs.Invalid("WaitAtMost is for DoAll and LockAll: TryLockAll and TryLockAllFor bound the wait themselves")
		}
		if c.wait = *o.WaitAtMost; c.wait < 0 {
			return errs.Invalid("WaitAtMost: %v is negative", c.wait)
		}
	}
	c.opts = slices.DeleteFunc(slices.Clone(opts), func(opt holdfast.LockOption) bool {
		one, _ := holdfast.NewLockOptions(opt)
		return one.WaitAtMost != nil
	})
	return nil
}

// take locks the keys of a locker, and returns a context that is bound to them, so that
// the loss of one of them ends the wait for the next key.
func (c *locking) take(ctx context.Context, p lockerKeys) (context.Context, error) {
	if e := engine.Of(p.locker); e != nil && len(p.keys) > 1 {
		began := time.Now()
		leases, err := c.together(ctx, e, p.keys)
		for _, l := range leases {
			ctx = c.set.add(ctx, l)
		}
		if len(leases) > 0 {
			return ctx, nil
		}
		ended := ctx.Err()
		over := c.wait > 0 && !time.Now().Before(c.until) || ended != nil && errors.Is(err, ended)
		// The undo after a lost answer is under way; another attempt would meet its keys.
		if over || (c.wait == 0 || ended != nil) && !errors.Is(err, holdfast.ErrNotAcquired) {
			e.Failed(p.keys[0], err, began)
			return ctx, errs.Of("lock", p.keys[0], err)
		}
	}
	for _, key := range p.keys {
		l, err := c.lock(ctx, p.locker, key)
		if err != nil {
			return ctx, err
		}
		ctx = c.set.add(ctx, l)
	}
	return ctx, nil
}

// together makes one attempt to take keys with one call, if the kind has such a call.
func (c *locking) together(ctx context.Context, e *engine.Engine, keys []string) ([]*holdfast.Lease, error) {
	if c.wait > 0 {
		limited, cancel := context.WithDeadlineCause(ctx, c.until, errs.ErrWaitOver)
		defer cancel()
		ctx = limited
	}
	return e.TryLockAll(ctx, keys, c.opts)
}

func (c *locking) lock(ctx context.Context, l holdfast.Locker, key string) (*holdfast.Lease, error) {
	switch c.wait {
	case forEver:
		return l.Lock(ctx, key, c.opts...)
	case 0:
		return l.TryLock(ctx, key, c.opts...)
	}
	return l.TryLockFor(ctx, key, max(time.Until(c.until), time.Nanosecond), c.opts...)
}

package interop

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
)

// reader is the readers' half of a read/write lock, with the calls of operators.
type reader struct {
	holdfast.Locker
	holdfast.Operator
}

// acquire takes a lease as the command says.
func acquire(ctx context.Context, l locktest.Locker, c command) (*holdfast.Lease, error) {
	var opts []holdfast.LockOption
	if c.Lease != nil {
		opts = append(opts, holdfast.FixedLease(milliseconds(c.Lease)))
	}
	switch {
	case c.Op == "lock":
		return l.Lock(ctx, c.Key, opts...)
	case c.Patience == nil:
		return l.TryLock(ctx, c.Key, opts...)
	}
	return l.TryLockFor(ctx, c.Key, milliseconds(c.Patience), opts...)
}

// administer carries out what needs no thread.
func administer(ctx context.Context, l locktest.Locker, c command) answer {
	switch c.Op {
	case "forceUnlock":
		ok, err := l.ForceUnlock(ctx, c.Key)
		if err != nil {
			return failed(c, err)
		}
		return done(c, ok, 0, "")
	case "inspect":
		s, err := l.Inspect(ctx, c.Key)
		if err != nil {
			return failed(c, err)
		}
		return done(c, s.Owner != "", int64(s.Entries), s.Owner)
	}
	return failed(c, fmt.Errorf("op %q", c.Op))
}

// openKinds makes a locker of each kind. Fences are kept forever, as beside Java.
func openKinds(client rueidis.Client, o options) (map[string]locktest.Locker, error) {
	plain, inOrder := []holdfast.Option{}, []holdfast.Option{}
	if o.Lease != 0 {
		plain, inOrder = append(plain, holdfast.WithLease(o.Lease)), append(inOrder, holdfast.WithLease(o.Lease))
	}
	if o.Handover != nil {
		plain, inOrder = append(plain, holdfast.WithLocalHandover(*o.Handover)), append(inOrder, holdfast.WithLocalHandover(*o.Handover))
	}
	if o.WaiterTTL != 0 {
		inOrder = append(inOrder, fair.WithWaiterTTL(o.WaiterTTL))
	}
	if o.GrantLease != 0 {
		inOrder = append(inOrder, fair.WithGrantLease(o.GrantLease))
	}
	if o.Sharded != nil {
		plain, inOrder = append(plain, holdfast.WithShardedPubSub(*o.Sharded)), append(inOrder, holdfast.WithShardedPubSub(*o.Sharded))
	}
	kinds := map[string]locktest.Locker{}
	for kind, more := range map[string][]holdfast.Option{
		"plain":  nil,
		"fenced": {holdfast.WithFencing(), holdfast.WithFenceExpiry(0)},
	} {
		l, err := rlock.New(client, append(more, plain...)...)
		if err != nil {
			return nil, err
		}
		kinds[kind] = l
	}
	for kind, more := range map[string][]holdfast.Option{
		"fair":        nil,
		"fair fenced": {holdfast.WithFencing(), holdfast.WithFenceExpiry(0)},
	} {
		l, err := fair.New(client, append(more, inOrder...)...)
		if err != nil {
			return nil, err
		}
		kinds[kind] = l
	}
	rw, err := rwlock.New(client, plain...)
	if err != nil {
		return nil, err
	}
	kinds["write"], kinds["read"] = rw, reader{rw.RLocker(), rw}
	return kinds, nil
}

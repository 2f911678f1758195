package interop

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/rlock"
)

// acquire takes a lease as the command says.
func acquire(ctx context.Context, l holdfast.Locker, c command) (*holdfast.Lease, error) {
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
func administer(ctx context.Context, l holdfast.Locker, c command) answer {
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

// openKinds makes a locker of each kind. Fences are kept for ever, as beside Java.
func openKinds(client rueidis.Client, o options) (map[string]holdfast.Locker, error) {
	plain, inOrder := []rlock.Option{}, []fair.Option{}
	if o.Lease != 0 {
		plain, inOrder = append(plain, rlock.WithLease(o.Lease)), append(inOrder, fair.WithLease(o.Lease))
	}
	if o.Handover != nil {
		plain, inOrder = append(plain, rlock.WithLocalHandover(*o.Handover)), append(inOrder, fair.WithLocalHandover(*o.Handover))
	}
	if o.Stale != 0 {
		inOrder = append(inOrder, fair.WithStale(o.Stale))
	}
	if o.FirstLease != 0 {
		inOrder = append(inOrder, fair.WithFirstLease(o.FirstLease))
	}
	if o.Sharded != nil {
		plain, inOrder = append(plain, rlock.WithShardedPubSub(*o.Sharded)), append(inOrder, fair.WithShardedPubSub(*o.Sharded))
	}
	kinds := map[string]holdfast.Locker{}
	for kind, more := range map[string][]rlock.Option{
		"plain":  nil,
		"fenced": {rlock.WithFencing(), rlock.WithFenceExpiry(0)},
	} {
		l, err := rlock.New(client, append(more, plain...)...)
		if err != nil {
			return nil, err
		}
		kinds[kind] = l
	}
	for kind, more := range map[string][]fair.Option{
		"fair":        nil,
		"fair fenced": {fair.WithFencing(), fair.WithFenceExpiry(0)},
	} {
		l, err := fair.New(client, append(more, inOrder...)...)
		if err != nil {
			return nil, err
		}
		kinds[kind] = l
	}
	return kinds, nil
}

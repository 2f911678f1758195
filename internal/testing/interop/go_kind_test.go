package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
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
	var plain []holdfast.Option
	if o.Lease != 0 {
		plain = append(plain, holdfast.WithLease(o.Lease))
	}
	if o.Handover != nil {
		plain = append(plain, holdfast.WithLocalHandover(*o.Handover))
	}
	if o.Sharded != nil {
		plain = append(plain, holdfast.WithShardedPubSub(*o.Sharded))
	}
	inOrder := slices.Clone(plain)
	if o.WaiterTTL != 0 {
		inOrder = append(inOrder, fair.WithWaiterTTL(o.WaiterTTL))
	}
	if o.GrantLease != 0 {
		inOrder = append(inOrder, fair.WithGrantLease(o.GrantLease))
	}
	var bad []error
	opened := func(l locktest.Locker, err error) locktest.Locker { bad = append(bad, err); return l }
	fenced := []holdfast.Option{holdfast.WithFencing(), holdfast.WithFenceExpiry(0)}
	rw, err := rwlock.New(client, plain...)
	if err != nil {
		return nil, err
	}
	return map[string]locktest.Locker{
		"plain":       opened(locktest.Opens(rlock.New(client, plain...))),
		"fenced":      opened(locktest.Opens(rlock.New(client, append(fenced, plain...)...))),
		"fair":        opened(locktest.Opens(fair.New(client, inOrder...))),
		"fair fenced": opened(locktest.Opens(fair.New(client, append(fenced, inOrder...)...))),
		"write":       rw,
		"read":        reader{rw.RLocker(), rw},
	}, errors.Join(bad...)
}

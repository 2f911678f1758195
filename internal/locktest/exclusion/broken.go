package exclusion

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// broken is a lock kind that does not exclude: one Lock in a hundred gives a lease without
// asking Redis. The check of exclusion must find it.
func broken(d Kind) Kind {
	return Kind{Name: "broken " + d.Name, New: func(client rueidis.Client, o Options) (holdfast.Locker, error) {
		l, err := d.New(client, o)
		return brokenLocker{l, o.Lease}, err
	}}
}

type brokenLocker struct {
	holdfast.Locker
	lease time.Duration
}

func (l brokenLocker) Lock(ctx context.Context, key string, c ...holdfast.LockOption) (*holdfast.Lease, error) {
	if rand.IntN(100) > 0 {
		return l.Locker.Lock(ctx, key, c...)
	}
	return forge(key, l.lease), nil
}

// forge makes a lease that no server gave.
func forge(key string, lease time.Duration) *holdfast.Lease {
	l := holdfast.NewLease(forged{key, time.Now().Add(lease)})
	return &l
}

type forged struct {
	key      string
	deadline time.Time
}

func (forged) Unlock(context.Context) error             { return nil }
func (forged) Bind(ctx context.Context) context.Context { return ctx }
func (forged) Done() <-chan struct{}                    { return nil }
func (forged) Err() error                               { return nil }
func (f forged) Deadline() time.Time                    { return f.deadline }
func (forged) Fence() int64                             { return 0 }
func (f forged) Key() string                            { return f.key }
func (forged) Owner() string                            { return "forged" }

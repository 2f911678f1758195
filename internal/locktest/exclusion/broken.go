package exclusion

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// mistake is one of a lock that does not exclude: what it does instead of a Lock.
type mistake func(ctx context.Context, l brokenLocker, key string, c []holdfast.LockOption) (*holdfast.Lease, error)

// mistakes are those of controls, which the check of exclusion must find.
var mistakes = map[string]mistake{
	"takes without asking": func(ctx context.Context, l brokenLocker, key string, c []holdfast.LockOption) (*holdfast.Lease, error) {
		if rand.IntN(10) > 0 {
			return l.Locker.Lock(ctx, key, c...)
		}
		return forge(key, l.lease), nil
	},
	"is not told": func(ctx context.Context, l brokenLocker, key string, c []holdfast.LockOption) (*holdfast.Lease, error) {
		lease, err := l.Locker.Lock(ctx, key, c...)
		if err == nil && len(c) == 0 { // it is renewed
			untold := holdfast.NewLease(untold{lease, l.lease})
			lease = &untold
		}
		return lease, err
	},
}

// broken is a lock kind with a mistake.
func broken(d Kind, m mistake) Kind {
	return Kind{Name: "broken " + d.Name, New: func(client rueidis.Client, o Options) (holdfast.Locker, error) {
		l, err := d.New(client, o)
		return brokenLocker{l, o.Lease, m}, err
	}}
}

type brokenLocker struct {
	holdfast.Locker
	lease   time.Duration
	mistake mistake
}

func (l brokenLocker) Lock(ctx context.Context, key string, c ...holdfast.LockOption) (*holdfast.Lease, error) {
	return l.mistake(ctx, l, key, c)
}

// untold is a lease that is never lost, as its holder sees it.
type untold struct {
	*holdfast.Lease
	lease time.Duration
}

func (untold) Done() <-chan struct{} { return nil }
func (untold) Err() error            { return nil }
func (u untold) Deadline() time.Time { return time.Now().Add(u.lease) }

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

package exclusion

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// broken is a lock kind whose holders are never told that they have lost a lease, as the check
// of exclusion must find.
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
	lease, err := l.Locker.Lock(ctx, key, c...)
	if err == nil && len(c) == 0 { // it is renewed
		untold := holdfast.NewLease(untold{lease, l.lease})
		lease = &untold
	}
	return lease, err
}

// untold is a lease that is never lost, as its holder sees it.
type untold struct {
	*holdfast.Lease
	lease time.Duration
}

func (untold) Done() <-chan struct{} { return nil }
func (untold) Err() error            { return nil }
func (u untold) Deadline() time.Time { return time.Now().Add(u.lease) }

package exclusion

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// seededBug is one fault of a lock; nil functions do what is right.
type seededBug struct {
	take   func(key string) (*holdfast.Lease, error) // instead of one TryLock in ten
	unlock func(l holdfast.Locker, key string, err error) error
}

var seededBugs = map[string]seededBug{
	"takes without asking": {take: func(key string) (*holdfast.Lease, error) {
		return forge(key, historyLease), nil
	}},
	"releases another's": {unlock: func(l holdfast.Locker, key string, err error) error {
		if errors.Is(err, holdfast.ErrLost) {
			_, _ = l.ForceUnlock(context.Background(), key)
		}
		return err
	}},
	"hides a loss": {unlock: func(holdfast.Locker, string, error) error { return nil }},
}

// in returns a lock kind with that fault.
func (b seededBug) in(d Kind) Kind {
	return Kind{Name: "broken " + d.Name, New: func(client rueidis.Client, o Options) (holdfast.Locker, error) {
		l, err := d.New(client, o)
		return seededLocker{l, b}, err
	}}
}

type seededLocker struct {
	holdfast.Locker
	bug seededBug
}

func (l seededLocker) TryLock(ctx context.Context, key string, c ...holdfast.LockOption) (*holdfast.Lease, error) {
	if l.bug.take != nil && rand.IntN(10) == 0 {
		return l.bug.take(key)
	}
	lease, err := l.Locker.TryLock(ctx, key, c...)
	return l.seed(lease), err
}

func (l seededLocker) Lock(ctx context.Context, key string, c ...holdfast.LockOption) (*holdfast.Lease, error) {
	lease, err := l.Locker.Lock(ctx, key, c...)
	return l.seed(lease), err
}

func (l seededLocker) seed(lease *holdfast.Lease) *holdfast.Lease {
	if lease == nil || l.bug.unlock == nil {
		return lease
	}
	seeded := holdfast.NewLease(seededLease{lease, l})
	return &seeded
}

type seededLease struct {
	*holdfast.Lease
	locker seededLocker
}

func (l seededLease) Unlock(ctx context.Context) error {
	return l.locker.bug.unlock(l.locker.Locker, l.Key(), l.Lease.Unlock(ctx))
}

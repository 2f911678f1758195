package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
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

// work takes and gives back locks until told to stop, and records each lease, as
// Work.java does. It answers how many it kept to their ends, and whether all.
func (g *goAgent) work(c command) answer {
	g.opened.Do(func() { g.recorder, g.openErr = exclusion.NewRecorder(c.File, c.Name) })
	if g.openErr != nil {
		return failed(c, g.openErr)
	}
	kept, all := int64(0), true
	for !g.stopped.Load() {
		called := locktest.Clock()
		l, err := acquire(context.Background(), g.kinds[c.Kind], wayTo(c.Keys[rand.IntN(len(c.Keys))]))
		if slices.ContainsFunc([]error{holdfast.ErrNotAcquired, holdfast.ErrUnavailable, holdfast.ErrUnknown},
			func(known error) bool { return errors.Is(err, known) }) {
			continue
		}
		if err != nil {
			return failed(c, err)
		}
		record := g.recorder.Granted(l, false, called)
		record.Hold(context.Background(), holdTime())
		record.Ends()
		switch err = l.Unlock(context.Background()); {
		case err == nil:
			kept++
		case errors.Is(err, holdfast.ErrLost):
			all = false
		}
	}
	return done(c, all, kept, "")
}

// wayTo is one of the ways to take a lock.
func wayTo(key string) command {
	c := command{Op: "tryLock", Key: key}
	switch rand.IntN(8) {
	case 0:
	case 1:
		c.Patience = ms(upTo(50 * time.Millisecond))
	case 2:
		c.Patience = ms(upTo(time.Second))
	default:
		c.Op = "lock"
	}
	return c
}

func holdTime() time.Duration {
	if rand.IntN(10) == 0 {
		return upTo(20 * time.Millisecond)
	}
	return upTo(time.Millisecond)
}

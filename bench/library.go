package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/rlock"
)

// locker is one client of a library, or of the floor.
type locker interface {
	// cycle returns a function that waits for key, runs inside and unlocks.
	cycle(key string) func(inside func()) error
	// close ends waits with an error. A second call does nothing.
	close()
}

// ender is a locker whose waits only end with the load if they are told.
type ender interface {
	locker
	over()
}

// holder is a locker that can also keep a key.
type holder interface {
	locker
	hold(key string) (lease, error)
}

// lease is a key that is kept and renewed.
type lease interface {
	Err() error // why it was lost, if it was
	Unlock(context.Context) error
}

// library opens a locker whose leases last for the given time and are renewed
// every third of it.
type library func(addr string, lease time.Duration) (locker, error)

// The subjects' names.
const (
	holdfastName   = "holdfast"
	noHandoverName = "no hand-over"
	floorName      = "floor"
	rueidisName    = "rueidislock"

	fairName         = "fair"
	fairStraightName = "fair, no hand-over"
	ringName         = "ring" // see childTask.open
)

var libraries = map[string]library{
	holdfastName:   holdfast(),
	noHandoverName: holdfast(rlock.WithLocalHandover(0)),
	floorName:      openFloor,
	rueidisName:    openRueidislock,

	fairName:         openFair(),
	fairStraightName: openFair(fair.WithLocalHandover(0)),
}

// always is the context of every cycle: none that could end.
var always = context.Background()

type rlockLocker struct {
	client rueidis.Client
	locker *rlock.Locker
}

func holdfast(opts ...rlock.Option) library {
	return func(addr string, lease time.Duration) (locker, error) {
		client, err := rueidis.NewClient(options(addr))
		if err != nil {
			return nil, err
		}
		l, err := rlock.New(client, append(opts, rlock.WithLease(lease))...)
		if err != nil {
			client.Close()
			return nil, err
		}
		return &rlockLocker{client: client, locker: l}, nil
	}
}

func (l *rlockLocker) cycle(key string) func(func()) error {
	return func(inside func()) error {
		lease, err := l.locker.Lock(always, key)
		if err != nil {
			return err
		}
		inside()
		return lease.Unlock(always)
	}
}

func (l *rlockLocker) hold(key string) (lease, error) { return l.locker.Lock(always, key) }

func (l *rlockLocker) close() {
	_ = l.locker.Close() // what is not released now frees itself
	l.client.Close()
}

type rueidislocker struct{ rueidislock.Locker }

func openRueidislock(addr string, lease time.Duration) (locker, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:    1,
		NoLoopTracking: true,
		TryNextAfter:   time.Second, // at 20 ms, its default, a slow reply may leave a waiter asleep
		KeyValidity:    lease,
		ExtendInterval: lease / 3,
	})
	return rueidislocker{l}, err
}

func (l rueidislocker) cycle(key string) func(func()) error {
	return func(inside func()) error {
		_, unlock, err := l.WithContext(always, key)
		if err != nil {
			return err
		}
		inside()
		unlock()
		return nil
	}
}

func (l rueidislocker) hold(key string) (lease, error) {
	ctx, unlock, err := l.WithContext(always, key)
	return rueidisLease{ctx, unlock}, err
}

func (l rueidislocker) close() { l.Close() }

type rueidisLease struct {
	context.Context
	unlock context.CancelFunc
}

func (l rueidisLease) Unlock(context.Context) error {
	l.unlock()
	return nil
}

package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

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

// once runs inside under key, one time.
func once(l locker, key string, inside func()) error {
	if o, ok := l.(oncer); ok {
		return o.once(key, inside)
	}
	return l.cycle(key)(inside)
}

// oncer is a locker whose cycles cost more to begin with than one turn is worth.
type oncer interface {
	locker
	once(key string, inside func()) error
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
	setFloorName   = "floor of SET"

	fairName         = "fair"
	fairStraightName = "fair, no hand-over"
	ringName         = "ring" // see childTask.open
	queueRingName    = "ring with a queue"
)

var libraries = map[string]library{
	holdfastName:   holdfast(),
	noHandoverName: holdfast(rlock.WithLocalHandover(0)),
	floorName:      openFloor,
	setFloorName:   openSetFloor,

	fairName:         openFair(),
	fairStraightName: openFair(fair.WithLocalHandover(0)),

	rueidisName:   openRueidislock,
	redsyncName:   openRedsyncOne,
	redislockName: openRedislock,
	etcdName:      openEtcd,
	zookeeperName: openZookeeper,
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

func (l *rlockLocker) tries(key string) func() (bool, error) {
	return func() (bool, error) {
		_, err := l.locker.TryLock(always, key)
		if errors.Is(err, rlock.ErrNotAcquired) {
			return false, nil
		}
		return err == nil, err
	}
}

func (l *rlockLocker) close() {
	_ = l.locker.Close() // what is not released now frees itself
	l.client.Close()
}

package main

import (
	"context"
	"time"
)

// locker is one client of a library, or of a floor.
type locker interface {
	// cycle returns a function that waits for key, runs inside and unlocks. It is for one
	// goroutine.
	cycle(key string) func(inside func()) error
	// close ends waits with an error. A second call does nothing.
	close()
}

// trier is a locker that can also ask without waiting.
type trier interface {
	locker
	// tries returns a function that tells whether it got key.
	tries(key string) func() (bool, error)
}

// keeper is a locker that can keep many keys, and renews them.
type keeper interface {
	locker
	keep(key string) (kept, error)
}

// kept is a key that is kept.
type kept interface {
	Err() error // why it was lost, if it was
}

// ender is a locker whose waits only end with the load if it is told.
type ender interface {
	locker
	over()
}

// library is what is measured. One file declares each.
type library struct {
	// open connects. A lease lasts for as long as the task says and is renewed every third of
	// it, if the library renews at all.
	open func(task) (locker, error)
	// java is the kind of Redisson's lock; the Java program opens it.
	java string
	// inner are the commands that its scripts call, and that no client of it sends by itself.
	inner []string
	// server starts what it has instead of a Redis.
	server func() (*process, error)
	// absent tells why it cannot be measured here; nil: it always can be.
	absent func() error
}

var libraries = map[string]*library{
	"holdfast":           rlockLibrary(),
	"no hand-over":       rlockLibrary(noHandover),
	"fair":               fairLibrary(),
	"fair, no hand-over": fairLibrary(fairNoHandover),
	"multilock":          multilockLibrary(),

	"floor":              {open: openFloor, inner: ourCommands},
	"floor of SET":       {open: openSetFloor, inner: []string{"get", "del"}},
	single:               {open: openSingle, inner: ourCommands},
	single + " and node": {open: openSingle, inner: ourCommands},
	"ring":               {open: openRing(false), inner: ourCommands},
	"ring with a queue":  {open: openRing(true), inner: ourCommands},

	"rueidislock":         rueidislockLibrary,
	"redsync":             redsyncLibrary(openRedsync),
	"redsync on go-redis": redsyncLibrary(openRedsyncGoRedis),
	"redislock":           redislockLibrary,
	"etcd":                etcdLibrary,
	"zookeeper":           zookeeperLibrary,
	"Redisson":            redissonLibrary("plain"),
	"Redisson fair":       redissonLibrary("fair"),
	"Redisson spin":       redissonLibrary("spin"),
}

// always is the context of every cycle: none that could end.
var always = context.Background()

// usualLease is the lease wherever it does not matter: rlock's default.
const usualLease = 30 * time.Second

// hold has a locker hold key in a goroutine until unlock is called.
func hold(l locker, key string) (unlock func() error, err error) {
	has, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- l.cycle(key)(func() {
			close(has)
			<-free
		})
	}()
	select {
	case <-has:
		return func() error {
			close(free)
			return <-done
		}, nil
	case err := <-done:
		return nil, err
	}
}

// refusals is a locker whose cycles are tries that must be refused: another client holds
// the key.
type refusals struct {
	trier
	holding locker
}

func openRefusals(t task) (locker, error) {
	open := libraries[t.Library].open
	asking, err := open(t)
	if err != nil {
		return nil, err
	}
	holding, err := open(t)
	if err == nil {
		_, err = hold(holding, tried)
	}
	if err != nil {
		asking.close()
		return nil, err
	}
	return &refusals{asking.(trier), holding}, nil
}

func (r *refusals) cycle(key string) func(func()) error {
	try := r.tries(key)
	return func(inside func()) error {
		got, err := try()
		if err == nil && got {
			return errNotRefused
		}
		inside()
		return err
	}
}

func (r *refusals) close() {
	r.holding.close()
	r.trier.close()
}

package main

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
)

// locker is one client of a library, or of a floor.
type locker interface {
	// cycle returns a function that waits for key, calls inside and unlocks. Only one
	// goroutine may call it.
	cycle(key string) func(inside func()) error
	// close ends waits with an error.
	close()
}

// What only some lockers can do.
type (
	// trier tries without waiting.
	trier interface {
		try(key string) (got bool, err error)
	}
	// elector elects a leader: campaign returns a function that waits until it leads group, calls inside and resigns.
	elector interface {
		campaign(group string) func(inside func()) error
	}
	// keeper holds many keys, and renews them.
	keeper interface {
		keep(key string) (kept, error)
	}
)

// candidate is a locker whose cycles are terms.
type candidate struct{ locker }

func (c candidate) cycle(group string) func(func()) error { return c.locker.(elector).campaign(group) }

// kept is a key that is held.
type kept interface {
	Err() error // why it was lost, if it was
}

// library is what is measured. Each has a file.
type library struct {
	// open connects. A lease lasts as long as the task says. It is renewed every third of
	// that if the library renews at all.
	open func(task) locker
	// java is the kind of Redisson's lock, which the Java program opens.
	java string
	// inner are the commands that its scripts call and that its clients never send themselves.
	inner []string
	// absent returns why the library cannot be measured here. Without it, it always can.
	absent func() error

	// server returns the command of what the library has instead of a Redis, and ready
	// returns nil once that answers.
	server func(s *starter, addr string) *exec.Cmd
	ready  func(addr string) error

	running *daemon // of server; guarded by daemons
	failed  error   // why it did not start; guarded by daemons
}

var libraries = map[string]*library{
	"holdfast":            oursLibrary(newOf(rlock.New)),
	"no handover":         oursLibrary(newOf(rlock.New, holdfast.WithLocalHandover(0))),
	"holdfast, 1 replica": oursLibrary(newOf(rlock.New, holdfast.WithReplicas(1, time.Second))),
	"fair":                oursLibrary(newOf(fair.New)),
	"fair, no handover":   oursLibrary(newOf(fair.New, holdfast.WithLocalHandover(0))),
	"multilock":           oursLibrary(newMultilockWithVotes),
	"semaphore":           oursLibrary(newSemaphore),
	"rwlock":              oursLibrary(newOf(rwlock.New)),

	"floor":              {open: func(t task) locker { return newFloor(t) }, inner: ourCommands},
	"floor of SET":       {open: func(t task) locker { return setFloor{newFloor(t, setRelease)} }, inner: []string{"get", "del"}},
	single:               {open: openSingle, inner: ourCommands},
	single + " and node": {open: openSingle, inner: ourCommands},
	"ring":               {open: openRing(false), inner: ourCommands},
	"ring with a queue":  {open: openRing(true), inner: ourCommands},

	"rueidislock":         {open: openRueidislock, inner: []string{"set", "get", "del", "pexpireat"}},
	"redsync":             {open: openRedsync, inner: []string{"get", "del"}},
	"redsync on go-redis": {open: openRedsyncGoRedis, inner: []string{"get", "del"}},
	"redislock":           {open: openRedislock, inner: []string{"set", "get", "getrange", "del", "pexpire", "pttl"}},
	"etcd":                {open: openEtcd, absent: needEtcd, server: etcdServer, ready: etcdReady},
	"zookeeper":           {open: openZookeeper, absent: needZookeeper, server: zookeeperServer, ready: zookeeperReady},
	"Redisson":            redissonLibrary("plain"),
	"Redisson fair":       redissonLibrary("fair"),
	"Redisson spin":       redissonLibrary("spin"),
	"Redisson read/write": redissonLibrary("read/write"),
	"Redisson permits":    redissonLibrary("permits"),
	"Redisson semaphore":  redissonLibrary("semaphore"),
}

// always is the context of every cycle: it never ends.
var always = context.Background()

// usualLease is the lease wherever its length does not matter: rlock's default.
const usualLease = 30 * time.Second

// unlessRefused is the result of a try whose library returns refused if another client has the key.
func unlessRefused(err, refused error) (got bool, _ error) {
	if errors.Is(err, refused) {
		return false, nil
	}
	return err == nil, err
}

// hold has a locker hold key in a goroutine until unlock is called.
func hold(l locker, key string) (unlock func() error) {
	has, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- l.cycle(key)(func() {
			close(has)
			<-free
		})
	}()
	select {
	case <-has:
	case err := <-done:
		check(err)
	}
	return func() error {
		close(free)
		return <-done
	}
}

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/multilock"
)

// masters is how many independent nodes a quorum is of.
const masters = 5

// nodes are independent servers.
type nodes []*server

func startNodes(n int) (nodes, error) {
	var all nodes
	for range n {
		s, err := startServer()
		if err != nil {
			all.stop()
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (all nodes) stop() {
	for _, s := range all {
		s.stop()
	}
}

func (all nodes) addrs() (addrs []string) {
	for _, s := range all {
		addrs = append(addrs, s.addr)
	}
	return addrs
}

// callsDuring returns what all nodes together executed while f ran.
func (all nodes) callsDuring(f func() error) (calls, error) {
	if len(all) == 0 {
		return make(calls), f()
	}
	var rest calls
	first, err := all[0].callsDuring(func() (err error) {
		rest, err = all[1:].callsDuring(f)
		return err
	})
	for name, n := range rest {
		first[name] += n
	}
	return first, err
}

// cpu is the processor time that all nodes have used, in seconds.
func (all nodes) cpu() (sum float64, err error) {
	for _, s := range all {
		used, err := s.cpu()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// quorumLibrary opens a locker on several nodes, of which a majority gives a lock.
type quorumLibrary func(addrs []string, lease time.Duration) (locker, error)

// The subjects' names.
const (
	multilockName = "multilock"
	redsyncName   = "redsync"
)

var quorumLibraries = map[string]quorumLibrary{
	multilockName: openMultilock,
	redsyncName:   openRedsync,
}

type multilocker struct {
	clients []rueidis.Client
	locker  *multilock.Locker
}

// openMultilock gives fresh nodes their vote, too.
func openMultilock(addrs []string, lease time.Duration) (locker, error) {
	l, err := newMultilocker(addrs, lease)
	if err != nil {
		return nil, err
	}
	if err := l.locker.Bootstrap(always); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// newMultilocker connects and makes no call.
func newMultilocker(addrs []string, lease time.Duration) (*multilocker, error) {
	l := &multilocker{}
	for _, addr := range addrs {
		client, err := rueidis.NewClient(options(addr))
		if err != nil {
			l.close()
			return nil, err
		}
		l.clients = append(l.clients, client)
	}
	var err error
	if l.locker, err = multilock.New(l.clients, multilock.WithLease(lease)); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *multilocker) cycle(key string) func(func()) error {
	return func(inside func()) error {
		lease, err := l.locker.Lock(always, key)
		if err != nil {
			return err
		}
		inside()
		return lease.Unlock(always)
	}
}

func (l *multilocker) hold(key string) (lease, error) { return l.locker.Lock(always, key) }

func (l *multilocker) close() {
	if l.locker != nil {
		_ = l.locker.Close() // what is not released now frees itself
	}
	for _, client := range l.clients {
		client.Close()
	}
}

type redsyncer struct {
	clients []*redis.Client
	sync    *redsync.Redsync
	lease   time.Duration
}

// openRedsync has as many connections to each node as goroutines may want at a
// time: none waits for another's.
func openRedsync(addrs []string, lease time.Duration) (locker, error) {
	l := &redsyncer{lease: lease}
	var pools []redsyncredis.Pool
	for _, addr := range addrs {
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: inFlight})
		l.clients, pools = append(l.clients, client), append(pools, redsyncpool.NewPool(client))
	}
	l.sync = redsync.New(pools...)
	return l, nil
}

func (l *redsyncer) cycle(key string) func(func()) error {
	return func(inside func()) error {
		m := l.sync.NewMutex(key, redsync.WithExpiry(l.lease))
		if err := m.Lock(); err != nil {
			return err
		}
		inside()
		released, err := m.Unlock()
		if err == nil && !released {
			err = fmt.Errorf("redsync: %s was lost", key)
		}
		return err
	}
}

func (l *redsyncer) close() {
	for _, client := range l.clients {
		if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			panic(err) // it has nothing to close but connections
		}
	}
}

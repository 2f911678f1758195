package main

import (
	"time"

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

// kill ends the processes alone. stop must follow.
func (all nodes) kill() {
	for _, s := range all {
		_ = s.cmd.Process.Kill() // fails only if the process has ended already
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

// The subjects' names; the third is redsync as anywhere else.
const (
	multilockName      = "multilock"
	redsyncGoRedisName = "redsync on go-redis"
)

var quorumLibraries = map[string]quorumLibrary{
	multilockName:      openMultilock,
	redsyncName:        openRedsync,
	redsyncGoRedisName: openRedsyncGoRedis,
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
	if err := l.locker.Bootstrap(always, multilock.NothingHeld()); err != nil {
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

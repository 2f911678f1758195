package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/scripts"
)

// ours is a lock of any kind with its clients.
type ours struct {
	clients []rueidis.Client
	locker  holdfast.Locker
}

// ourCommands are those that our scripts call, but for the INFO of the quorum's. INFO
// counts those as well; no subject of ours sends them by itself.
var ourCommands = slices.DeleteFunc(slices.Concat(scripts.Commands(), scripts.FairCommands(), scripts.QuorumCommands()), func(c string) bool {
	return strings.HasPrefix(c, "eval") || c == "script|load" || c == "info"
})

var (
	noHandover     = rlock.WithLocalHandover(0)
	fairNoHandover = fair.WithLocalHandover(0)
)

func rlockLibrary(opts ...rlock.Option) *library {
	return &library{inner: ourCommands, open: func(t task) (locker, error) {
		return openOurs(t, func(clients []rueidis.Client) (holdfast.Locker, error) {
			return rlock.New(clients[0], append(opts, rlock.WithLease(t.lease()))...)
		})
	}}
}

func fairLibrary(opts ...fair.Option) *library {
	return &library{inner: ourCommands, open: func(t task) (locker, error) {
		return openOurs(t, func(clients []rueidis.Client) (holdfast.Locker, error) {
			return fair.New(clients[0], append(opts, fair.WithLease(t.lease()))...)
		})
	}}
}

// multilockLibrary also gives fresh nodes their vote.
func multilockLibrary() *library {
	return &library{inner: ourCommands, open: func(t task) (locker, error) {
		l, err := openMultilock(t)
		if err != nil {
			return nil, err
		}
		if err := l.locker.(*multilock.Locker).Bootstrap(always, multilock.NothingHeld()); err != nil {
			l.close()
			return nil, err
		}
		return l, nil
	}}
}

// openMultilock connects and makes no call.
func openMultilock(t task) (*ours, error) {
	return openOurs(t, func(clients []rueidis.Client) (holdfast.Locker, error) {
		return multilock.New(clients, multilock.WithLease(t.lease()))
	})
}

func openOurs(t task, open func([]rueidis.Client) (holdfast.Locker, error)) (*ours, error) {
	l := &ours{}
	for _, addr := range t.Addrs {
		client, err := rueidis.NewClient(options(addr))
		if err != nil {
			l.close()
			return nil, err
		}
		l.clients = append(l.clients, client)
	}
	locker, err := open(l.clients)
	if err != nil {
		l.close()
		return nil, err
	}
	l.locker = locker
	return l, nil
}

func (l *ours) cycle(key string) func(func()) error {
	return func(inside func()) error {
		lease, err := l.locker.Lock(always, key)
		if err != nil {
			return err
		}
		inside()
		return lease.Unlock(always)
	}
}

func (l *ours) keep(key string) (kept, error) { return l.locker.Lock(always, key) }

func (l *ours) tries(key string) func() (bool, error) {
	return func() (bool, error) {
		_, err := l.locker.TryLock(always, key)
		if errors.Is(err, holdfast.ErrNotAcquired) {
			return false, nil
		}
		return err == nil, err
	}
}

func (l *ours) close() {
	if l.locker != nil {
		_ = l.locker.Close() // what is not released now frees itself
	}
	for _, client := range l.clients {
		client.Close()
	}
}

package main

import (
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/fair"
)

type fairLocker struct {
	client rueidis.Client
	locker *fair.Locker
}

func openFair(opts ...fair.Option) library {
	return func(addr string, lease time.Duration) (locker, error) {
		client, err := rueidis.NewClient(options(addr))
		if err != nil {
			return nil, err
		}
		l, err := fair.New(client, append(opts, fair.WithLease(lease))...)
		if err != nil {
			client.Close()
			return nil, err
		}
		return &fairLocker{client: client, locker: l}, nil
	}
}

func (l *fairLocker) cycle(key string) func(func()) error {
	return func(inside func()) error {
		lease, err := l.locker.Lock(always, key)
		if err != nil {
			return err
		}
		inside()
		return lease.Unlock(always)
	}
}

func (l *fairLocker) hold(key string) (lease, error) { return l.locker.Lock(always, key) }

func (l *fairLocker) tries(key string) func() (bool, error) {
	return func() (bool, error) {
		_, err := l.locker.TryLock(always, key)
		if errors.Is(err, fair.ErrNotAcquired) {
			return false, nil
		}
		return err == nil, err
	}
}

func (l *fairLocker) close() {
	_ = l.locker.Close() // what is not released now frees itself
	l.client.Close()
}

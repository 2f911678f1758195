package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

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

func (l rueidislocker) tries(key string) func() (bool, error) {
	return func() (bool, error) {
		_, _, err := l.TryWithContext(always, key)
		if errors.Is(err, rueidislock.ErrNotLocked) {
			return false, nil
		}
		return err == nil, err
	}
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

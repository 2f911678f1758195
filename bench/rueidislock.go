package main

import (
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type rueidislocker struct{ rueidislock.Locker }

func openRueidislock(t task) locker {
	return rueidislocker{must(rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: t.Addrs, Sentinel: rueidis.SentinelOption{MasterSet: t.Set}},
		KeyMajority:    1,
		NoLoopTracking: true,
		TryNextAfter:   time.Second, // at 20 ms, its default, a slow reply may leave a waiter asleep
		KeyValidity:    t.lease(),
		ExtendInterval: t.lease() / 3,
	}))}
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

// keep returns the context of the lock, which ends when it is lost.
func (l rueidislocker) keep(key string) (kept, error) {
	ctx, _, err := l.WithContext(always, key)
	return ctx, err
}

func (l rueidislocker) try(key string) (bool, error) {
	_, _, err := l.TryWithContext(always, key)
	return unlessRefused(err, rueidislock.ErrNotLocked)
}

func (l rueidislocker) close() { l.Close() }

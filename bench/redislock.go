package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// redislocker asks with a distant deadline: without one, redislock gives up after the lease.
type redislocker struct {
	client *redis.Client
	locker *redislock.Client
	lease  time.Duration
	ctx    context.Context
	cancel context.CancelFunc
}

func openRedislock(t task) locker {
	client := redis.NewClient(&redis.Options{Addr: t.Addrs[0], PoolSize: inFlight})
	ctx, cancel := context.WithTimeout(always, 24*time.Hour)
	return &redislocker{client, redislock.New(client), t.lease(), ctx, cancel}
}

func (l *redislocker) cycle(key string) func(func()) error {
	return func(inside func()) error {
		pause := redislock.LinearBackoff(100 * time.Millisecond) // as in its authors' example
		lock, err := l.locker.Obtain(l.ctx, key, l.lease, &redislock.Options{RetryStrategy: pause})
		if err != nil {
			return err
		}
		inside()
		return lock.Release(always)
	}
}

func (l *redislocker) try(key string) (bool, error) {
	_, err := l.locker.Obtain(l.ctx, key, l.lease, nil)
	return unlessRefused(err, redislock.ErrNotObtained)
}

func (l *redislocker) close() {
	l.cancel()
	_ = l.client.Close() // it ends in any case
}

func init() { logging.Disable() } // go-redis would write to the terminal

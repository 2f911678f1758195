package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockPause is the time between two tries in its authors' own example.
const redislockPause = 100 * time.Millisecond

// redislocker asks under a deadline far away: without one, redislock gives up after
// the lease.
type redislocker struct {
	client *redis.Client
	locker *redislock.Client
	lease  time.Duration
	ctx    context.Context
	cancel context.CancelFunc
}

func openRedislock(addr string, lease time.Duration) (locker, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: inFlight})
	ctx, cancel := context.WithTimeout(always, 24*time.Hour)
	return &redislocker{client, redislock.New(client), lease, ctx, cancel}, nil
}

func (l *redislocker) lock(key string) (redislockLease, error) {
	held, err := l.locker.Obtain(l.ctx, key, l.lease, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(redislockPause),
	})
	return redislockLease{held}, err
}

func (l *redislocker) cycle(key string) func(func()) error {
	return func(inside func()) error {
		lease, err := l.lock(key)
		if err != nil {
			return err
		}
		inside()
		return lease.Unlock(always)
	}
}

func (l *redislocker) hold(key string) (lease, error) { return l.lock(key) }

func (l *redislocker) tries(key string) func() (bool, error) {
	return func() (bool, error) {
		_, err := l.locker.Obtain(l.ctx, key, l.lease, nil)
		if errors.Is(err, redislock.ErrNotObtained) {
			return false, nil
		}
		return err == nil, err
	}
}

func (l *redislocker) close() {
	l.cancel()
	closeClient(l.client)
}

// redislockLease is not renewed.
type redislockLease struct{ *redislock.Lock }

func (redislockLease) Err() error { return nil }

func (l redislockLease) Unlock(ctx context.Context) error { return l.Release(ctx) }

// closeClient closes a client that may have been closed before.
func closeClient(client *redis.Client) {
	if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		panic(err) // it has nothing to close but connections
	}
}

// quiet keeps go-redis from writing to the terminal.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }

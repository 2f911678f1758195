package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

type redsyncer struct {
	ends     []func() // of the clients
	sync     *redsync.Redsync
	lease    time.Duration
	failFast bool // does not wait for nodes that are not needed
	closed   atomic.Bool
}

// openRedsync has one connection to each node, which all goroutines share: others
// would be opened by the first call on them, and fail with all that wait for them
// when redsync ends that call.
func openRedsync(addrs []string, lease time.Duration) (locker, error) {
	return openRedsyncOver(&redsyncer{lease: lease, failFast: true}, addrs, func(addr string) (redsyncredis.Pool, func(), error) {
		one := options(addr)
		one.PipelineMultiplex = -1
		client, err := rueidis.NewClient(one)
		if err != nil {
			return nil, nil, err
		}
		return rueidisPool{client}, client.Close, nil
	})
}

// openRedsyncGoRedis is redsync with the client of its README, and what is not set
// there as it comes. The client has as many connections to each node as goroutines
// may want at a time: none waits for another's.
func openRedsyncGoRedis(addrs []string, lease time.Duration) (locker, error) {
	return openRedsyncOver(&redsyncer{lease: lease}, addrs, func(addr string) (redsyncredis.Pool, func(), error) {
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: inFlight})
		return goredis.NewPool(client), func() { closeClient(client) }, nil
	})
}

// openRedsyncOver sets the clients of l.
func openRedsyncOver(l *redsyncer, addrs []string, open func(addr string) (redsyncredis.Pool, func(), error)) (locker, error) {
	var pools []redsyncredis.Pool
	for _, addr := range addrs {
		pool, end, err := open(addr)
		if err != nil {
			l.close()
			return nil, err
		}
		l.ends, pools = append(l.ends, end), append(pools, pool)
	}
	l.sync = redsync.New(pools...)
	return l, nil
}

func openRedsyncOne(addr string, lease time.Duration) (locker, error) {
	return openRedsync([]string{addr}, lease)
}

// mutex is what one call locks.
func (l *redsyncer) mutex(key string) *redsync.Mutex {
	return l.sync.NewMutex(key, redsync.WithExpiry(l.lease), redsync.WithFailFast(l.failFast))
}

// lock asks again where redsync gives up: after 32 tries.
func (l *redsyncer) lock(key string) (redsyncLease, error) {
	m := l.mutex(key)
	for {
		err := m.Lock()
		var taken *redsync.ErrTaken
		if !errors.Is(err, redsync.ErrFailed) && !errors.As(err, &taken) {
			return redsyncLease{m}, err
		}
		if l.closed.Load() {
			return redsyncLease{}, err
		}
	}
}

func (l *redsyncer) cycle(key string) func(func()) error {
	return func(inside func()) error {
		lease, err := l.lock(key)
		if err != nil {
			return err
		}
		inside()
		return lease.Unlock(always)
	}
}

func (l *redsyncer) hold(key string) (lease, error) { return l.lock(key) }

func (l *redsyncer) tries(key string) func() (bool, error) {
	return func() (bool, error) {
		err := l.mutex(key).TryLock()
		var taken *redsync.ErrTaken
		if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
			return false, nil
		}
		return err == nil, err
	}
}

// redsyncLease is not renewed.
type redsyncLease struct{ *redsync.Mutex }

func (redsyncLease) Err() error { return nil }

func (l redsyncLease) Unlock(ctx context.Context) error {
	released, err := l.UnlockContext(ctx)
	if err == nil && !released {
		err = fmt.Errorf("redsync: %s was lost", l.Name())
	}
	return err
}

func (l *redsyncer) close() {
	l.closed.Store(true)
	for _, end := range l.ends {
		end()
	}
}

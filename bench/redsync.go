package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

type redsyncer struct {
	ends     []func() // they close the clients
	sync     *redsync.Redsync
	lease    time.Duration
	failFast bool // do not wait for nodes that are not needed
	closed   atomic.Bool
}

// openRedsync has one connection to each node, which all goroutines share. The first call on a
// further one would open it, and if redsync ended that call, all that wait for the connection
// would fail.
func openRedsync(t task) locker {
	return openRedsyncOver(t, true, func(one rueidis.ClientOption) (redsyncredis.Pool, func()) {
		one.PipelineMultiplex = -1
		client := must(rueidis.NewClient(one))
		return redsyncrueidis.NewPool(rueidiscompat.NewAdapter(client)), client.Close
	})
}

// openRedsyncGoRedis is redsync with the client and the settings of its README. The client may
// open as many connections to each node as there are goroutines, so that none waits for one.
func openRedsyncGoRedis(t task) locker {
	return openRedsyncOver(t, false, func(one rueidis.ClientOption) (redsyncredis.Pool, func()) {
		client := redis.NewClient(&redis.Options{Addr: one.InitAddress[0], PoolSize: inFlight})
		return goredis.NewPool(client), func() { _ = client.Close() }
	})
}

func openRedsyncOver(t task, failFast bool, open func(rueidis.ClientOption) (redsyncredis.Pool, func())) locker {
	l := &redsyncer{lease: t.lease(), failFast: failFast}
	var pools []redsyncredis.Pool
	for _, one := range t.clients() {
		pool, end := open(one)
		l.ends, pools = append(l.ends, end), append(pools, pool)
	}
	l.sync = redsync.New(pools...)
	return l
}

// mutex is what one call locks.
func (l *redsyncer) mutex(key string) *redsync.Mutex {
	return l.sync.NewMutex(key, redsync.WithExpiry(l.lease), redsync.WithFailFast(l.failFast))
}

// isTaken reports whether redsync found the key taken.
func isTaken(err error) bool {
	return errors.Is(err, redsync.ErrFailed) || errors.As(err, new(*redsync.ErrTaken))
}

// cycle asks again where redsync gives up: after 32 tries.
func (l *redsyncer) cycle(key string) func(func()) error {
	return func(inside func()) error {
		m := l.mutex(key)
		err := m.Lock()
		for isTaken(err) && !l.closed.Load() {
			err = m.Lock()
		}
		if err != nil {
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

func (l *redsyncer) try(key string) (bool, error) {
	err := l.mutex(key).TryLock()
	if isTaken(err) {
		return false, nil
	}
	return err == nil, err
}

func (l *redsyncer) close() {
	l.closed.Store(true)
	for _, end := range l.ends {
		end()
	}
}

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

func redsyncLibrary(open func(task) (locker, error)) *library {
	return &library{open: open, inner: []string{"get", "del"}}
}

type redsyncer struct {
	ends     []func() // of the clients
	sync     *redsync.Redsync
	lease    time.Duration
	failFast bool // does not wait for nodes that are not needed
	closed   atomic.Bool
}

// openRedsync has one connection to each node, which all goroutines share: others would be
// opened by the first call on them, and fail with all that wait for them when redsync ends
// that call.
func openRedsync(t task) (locker, error) {
	return openRedsyncOver(&redsyncer{lease: t.lease(), failFast: true}, t.Addrs, func(addr string) (redsyncredis.Pool, func(), error) {
		one := options(addr)
		one.PipelineMultiplex = -1
		client, err := rueidis.NewClient(one)
		if err != nil {
			return nil, nil, err
		}
		return rueidisPool{client}, client.Close, nil
	})
}

// openRedsyncGoRedis is redsync with the client of its README, and what is not set there
// as it comes. The client has as many connections to each node as goroutines may want at a
// time: none waits for another's.
func openRedsyncGoRedis(t task) (locker, error) {
	return openRedsyncOver(&redsyncer{lease: t.lease()}, t.Addrs, func(addr string) (redsyncredis.Pool, func(), error) {
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: inFlight})
		return goredis.NewPool(client), func() { _ = client.Close() }, nil
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

// mutex is what one call locks.
func (l *redsyncer) mutex(key string) *redsync.Mutex {
	return l.sync.NewMutex(key, redsync.WithExpiry(l.lease), redsync.WithFailFast(l.failFast))
}

// refused tells whether redsync found the key taken.
func refused(err error) bool {
	var taken *redsync.ErrTaken
	return errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken)
}

// cycle asks again where redsync gives up: after 32 tries.
func (l *redsyncer) cycle(key string) func(func()) error {
	return func(inside func()) error {
		m := l.mutex(key)
		err := m.Lock()
		for refused(err) && !l.closed.Load() {
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
	if refused(err) {
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

// rueidisPool is a node for redsync by a rueidis client, which sends what many
// goroutines ask at a time in one write. redsync brings one, too, on top of
// rueidiscompat; this one has the same calls without what that costs.
type rueidisPool struct{ client rueidis.Client }

func (p rueidisPool) Get(ctx context.Context) (redsyncredis.Conn, error) {
	if ctx == nil {
		ctx = always
	}
	return rueidisConn{p.client, ctx}, nil
}

// rueidisConn is the client for the time of one call of redsync's.
type rueidisConn struct {
	client rueidis.Client
	ctx    context.Context
}

func (c rueidisConn) Get(name string) (string, error) {
	value, err := c.client.Do(c.ctx, c.client.B().Get().Key(name).Build()).ToString()
	return value, unlessNil(err)
}

func (c rueidisConn) Set(name, value string) (bool, error) {
	err := c.client.Do(c.ctx, c.client.B().Set().Key(name).Value(value).Build()).Error()
	return err == nil, err
}

func (c rueidisConn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	err := c.client.Do(c.ctx, c.client.B().Set().Key(name).Value(value).Nx().PxMilliseconds(expiry.Milliseconds()).Build()).Error()
	return err == nil, unlessNil(err)
}

func (c rueidisConn) PTTL(name string) (time.Duration, error) {
	left, err := c.client.Do(c.ctx, c.client.B().Pttl().Key(name).Build()).AsInt64()
	return time.Duration(left) * time.Millisecond, err
}

func (c rueidisConn) Eval(script *redsyncredis.Script, keysAndArgs ...any) (any, error) {
	all := make([]string, len(keysAndArgs))
	for i, v := range keysAndArgs {
		all[i] = fmt.Sprint(v)
	}
	keys, args := all[:script.KeyCount], all[script.KeyCount:]
	got := c.client.Do(c.ctx, c.client.B().Evalsha().Sha1(script.Hash).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if err, ok := rueidis.IsRedisErr(got.Error()); ok && err.IsNoScript() {
		got = c.client.Do(c.ctx, c.client.B().Eval().Script(script.Src).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	value, err := got.ToAny()
	return value, unlessNil(err)
}

func (c rueidisConn) ScriptLoad(script *redsyncredis.Script) (err error) {
	script.Hash, err = c.client.Do(c.ctx, c.client.B().ScriptLoad().Script(script.Src).Build()).ToString()
	return err
}

// Close leaves the client open: it is shared.
func (rueidisConn) Close() error { return nil }

// unlessNil takes the reply that there is nothing for no error.
func unlessNil(err error) error {
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}

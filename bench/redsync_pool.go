package main

import (
	"context"
	"fmt"
	"time"

	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/redis/rueidis"
)

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

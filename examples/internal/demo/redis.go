package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

const (
	runEnv      = "HOLDFAST_EXAMPLE_RUN"
	redisEnv    = "HOLDFAST_EXAMPLE_REDIS"
	callTimeout = 5 * time.Second
)

// Redis is the Redis of a run, which its processes share.
type Redis struct {
	rueidis.Client
	Address string // host:port, or a URL
	Run     string // a name that no other run has; it is part of all keys
}

// MainOnRedis is [Main] for an example with a Redis: that of the flag -redis, or an embedded one,
// which forgets everything at the end. The keys of the run are deleted from a real one at the end.
// Errors show no password.
func MainOnRedis(parent func(context.Context, *Redis) error, child func(ctx context.Context, redis *Redis, number int) error) {
	address := flag.String("redis", "", "`address` of a Redis: host:port, or a redis:// or rediss:// URL; none: an embedded server for this run")
	Main(func(ctx context.Context) error {
		return onRedis(ctx, *address, parent)
	}, func(ctx context.Context, number int) error {
		r, err := connect(os.Getenv(redisEnv), os.Getenv(runEnv))
		if err != nil {
			return err
		}
		defer r.Close()
		return child(ctx, r, number)
	})
}

func onRedis(ctx context.Context, address string, parent func(context.Context, *Redis) error) error {
	embedded := address == ""
	if embedded {
		m := miniredis.NewMiniRedis()
		if err := StartEmbedded(m, "127.0.0.1:0"); err != nil {
			return fmt.Errorf("embedded server: %w", err)
		}
		defer m.Close()
		address = m.Addr()
		fmt.Println("Redis: embedded in this program, for demonstration only; it forgets everything at the end, and refuses to be used for " +
			"anything that must last: -redis host:port takes a real one.")
	}
	r, err := connect(address, rand.Text()[:8])
	if err != nil {
		return err
	}
	defer r.Close()
	if !embedded {
		defer r.sweep()
	}
	if err := errors.Join(os.Setenv(runEnv, r.Run), os.Setenv(redisEnv, address)); err != nil {
		return err
	}
	return parent(ctx, r)
}

func connect(address, run string) (*Redis, error) {
	url := address
	if !strings.Contains(url, "://") {
		url = "redis://" + url
	}
	o, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, errors.New("-redis: neither host:port nor a redis:// or rediss:// URL") // err might show a password
	}
	o.ForceSingleClient = true // the client would take an embedded server for a Redis Cluster
	o.DisableCache = true
	o.DisableRetry = true // the examples repeat orders, not commands
	o.ConnWriteTimeout = callTimeout
	client, err := rueidis.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("-redis: %w", err)
	}
	return &Redis{client, address, run}, nil
}

// Key returns a key of this run.
func (r *Redis) Key(parts ...string) string {
	return "example:" + r.Run + ":" + strings.Join(parts, ":")
}

// Number returns the number at a key; 0 if there is none.
func (r *Redis) Number(ctx context.Context, key string) (int, error) {
	n, err := r.Do(ctx, r.B().Get().Key(key).Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return int(n), err
}

// SetNumber puts a number at a key.
func (r *Redis) SetNumber(ctx context.Context, key string, n int) error {
	return r.Do(ctx, r.B().Set().Key(key).Value(strconv.Itoa(n)).Build()).Error()
}

// sweep deletes the keys of the run: fence counters outlive their locks, and the places of a
// dead process stay at the end of a queue until a waiter comes after them.
func (r *Redis) sweep() {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	keys := rueidis.NewScanner(func(cursor uint64) (rueidis.ScanEntry, error) {
		return r.Do(ctx, r.B().Scan().Cursor(cursor).Match("*"+r.Run+"*").Count(1000).Build()).AsScanEntry()
	})
	for key := range keys.Iter() {
		_ = r.Do(ctx, r.B().Del().Key(key).Build()).Error() // best effort, as all of this
	}
}

package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
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

// RedisUsage is the text of the flag -redis.
const RedisUsage = "`address` of a Redis: host:port, or a redis:// or rediss:// URL; none: an embedded server for this run"

// Redis is the Redis of a run, which its processes share.
type Redis struct {
	rueidis.Client
	Address string // host:port, or a URL
	Run     string // a name that no other run has; it is part of all keys
	close   func()
}

// OpenRedis connects the parent to the Redis at address, or to an embedded one if that is
// empty, and a child to the Redis of its parent. Its errors show no password.
func OpenRedis(address string) (*Redis, error) {
	r := &Redis{Run: os.Getenv(runEnv), close: func() {}}
	child := r.Run != ""
	if child {
		address = os.Getenv(redisEnv)
	}
	embedded := address == ""
	if embedded {
		m := miniredis.NewMiniRedis()
		if err := StartEmbedded(m, "127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("embedded server: %w", err)
		}
		address, r.close = m.Addr(), m.Close
		fmt.Println("Redis: embedded in this program, for demonstration only; it forgets everything at the end, and refuses to be used for " +
			"anything that must last: -redis host:port takes a real one.")
	}
	var err error
	r.Address = address
	if r.Client, err = connect(address); err != nil || child {
		return r, err
	}
	if !embedded {
		r.close = r.sweep
	}
	r.Run = rand.Text()[:8]
	return r, errors.Join(os.Setenv(runEnv, r.Run), os.Setenv(redisEnv, address))
}

func connect(address string) (rueidis.Client, error) {
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	o, err := rueidis.ParseURL(address)
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
	return client, nil
}

// Close ends the connection. In the parent it also stops the embedded server, or deletes the
// keys of the run from a real one.
func (r *Redis) Close() {
	r.close()
	r.Client.Close()
}

// sweep deletes the keys of the run: fence counters outlive their locks, and the places of a
// dead process stay at the end of a queue until a waiter comes after them.
func (r *Redis) sweep() {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for cursor := uint64(0); ; {
		page, err := r.Do(ctx, r.B().Scan().Cursor(cursor).Match("*"+r.Run+"*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			return
		}
		if len(page.Elements) > 0 {
			_ = r.Do(ctx, r.B().Del().Key(page.Elements...).Build()).Error() // best effort, as all of this
		}
		if cursor = page.Cursor; cursor == 0 {
			return
		}
	}
}

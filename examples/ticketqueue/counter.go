package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	keepFor     = time.Hour       // the list of a day whose parent died
	callTimeout = 5 * time.Second // of one call to Redis
)

// counter is where one customer at a time is served.
type counter struct {
	client rueidis.Client
	id     string // tells this day's keys from others'
}

func (c *counter) lockKey() string   { return "ticketqueue:" + c.id + ":counter" }
func (c *counter) servedKey() string { return "ticketqueue:" + c.id + ":served" }

// queueKey is the list in which the fair lock keeps those who wait, the next one
// first. Its name is Redisson's.
func (c *counter) queueKey() string { return "redisson_lock_queue:{" + c.lockKey() + "}" }

// serve writes the customer down as served. It is only for the one whose turn it
// is; ctx ends when that is lost, and nothing is written then.
func (c *counter) serve(ctx context.Context, customer int, takes time.Duration) error {
	served, err := c.served(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(served, customer) {
		return fmt.Errorf("customer %d was served before", customer+1)
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var list strings.Builder
	for _, n := range append(served, customer) {
		list.WriteString(strconv.Itoa(n) + " ")
	}
	_, err = c.do(ctx, c.client.B().Set().Key(c.servedKey()).Value(list.String()).Ex(keepFor).Build())
	return err
}

// served returns the customers that were served, by their indexes, in order.
func (c *counter) served(ctx context.Context) ([]int, error) {
	text, err := c.text(ctx, c.client.B().Get().Key(c.servedKey()).Build())
	if err != nil {
		return nil, err
	}
	var served []int
	for _, field := range strings.Fields(text) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("list of the served: %w", err)
		}
		served = append(served, n)
	}
	return served, nil
}

// last returns who is last in the queue, as the lock calls it; "" if nobody waits.
func (c *counter) last(ctx context.Context) (string, error) {
	return c.text(ctx, c.client.B().Lindex().Key(c.queueKey()).Index(-1).Build())
}

// text runs a command that answers with a text; none is "".
func (c *counter) text(ctx context.Context, command rueidis.Completed) (string, error) {
	m, err := c.do(ctx, command)
	if rueidis.IsRedisNil(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return m.ToString()
}

// do runs one command, unless ctx is over. Once sent, it is waited for also if ctx
// ends: a write must not be overtaken by the unlock.
func (c *counter) do(ctx context.Context, command rueidis.Completed) (rueidis.RedisMessage, error) {
	if ctx.Err() != nil {
		return rueidis.RedisMessage{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return c.client.Do(ctx, command).ToMessage()
}

// close removes the list, and what the dead have left of the lock: the living
// leave nothing, but a dead process at the end of the queue is not missed by
// anybody. It goes key by key: the client of a Cluster panics on keys of different
// slots. It is for when all processes have ended.
func (c *counter) close() {
	lock := c.lockKey()
	for _, key := range []string{c.servedKey(), lock, c.queueKey(), "redisson_lock_timeout:{" + lock + "}", "holdfast_heartbeat:{" + lock + "}"} {
		_, _ = c.do(context.Background(), c.client.B().Del().Key(key).Build())
	}
}

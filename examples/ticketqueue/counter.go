package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/rlock"
)

const (
	patience = time.Minute          // the longest wait of a customer
	service  = 5 * time.Millisecond // the time at the counter
	glance   = 2 * time.Millisecond // the time between two looks at the queue
)

// counter serves one customer at a time. Both lock kinds do that; only one keeps the order.
type counter struct {
	redis  *demo.Redis
	locker interface {
		holdfast.Locker
		holdfast.Operator
	}
	dies bool // this process dies at the counter when half of the customers have been served
}

func openCounter(address string) (c *counter, err error) {
	c = new(counter)
	if c.redis, err = demo.OpenRedis(address); err != nil {
		return nil, err
	}
	if *isFair {
		c.locker, err = fair.New(c.redis, holdfast.WithLease(*lease), fair.WithWaiterTTL(*lease), fair.WithGrantLease(*lease))
	} else {
		c.locker, err = rlock.New(c.redis, holdfast.WithLease(*lease))
	}
	if err != nil {
		c.redis.Close()
		return nil, err
	}
	return c, nil
}

func (c *counter) close() {
	c.locker.Close()
	c.redis.Close()
}

// visit queues a customer and serves it when it is its turn.
func (c *counter) visit(ctx context.Context, customer int) error {
	if err := c.redis.Do(ctx, c.redis.B().Incr().Key(c.key("asked")).Build()).Error(); err != nil {
		return err
	}
	err := c.locker.Do(ctx, c.key("lock"), func(ctx context.Context) error {
		return c.serve(ctx, customer)
	}, holdfast.WaitAtMost(patience))
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired):
		return fmt.Errorf("customer %d has lost its patience: %w", customer, err)
	case errors.Is(err, holdfast.ErrLost):
		return fmt.Errorf("customer %d has lost its turn, and would have to queue again: %w", customer, err)
	case err != nil:
		return fmt.Errorf("customer %d: %w", customer, err)
	}
	return nil
}

// serve is the critical section. It adds the customer to a list that is one value in Redis. Only the lock keeps two
// customers from writing it at once.
func (c *counter) serve(ctx context.Context, customer int) error {
	served, err := c.served(ctx)
	if err != nil {
		return err
	}
	if c.dies && len(served) >= *customers/2 {
		demo.Die()
	}
	if err := demo.Sleep(ctx, service); err != nil {
		return err
	}
	list := rueidis.JSON(append(served, customer))
	return c.redis.Do(ctx, c.redis.B().Set().Key(c.key("served")).Value(list).Build()).Error()
}

// served returns the list.
func (c *counter) served(ctx context.Context) (list []int, err error) {
	err = c.redis.Do(ctx, c.redis.B().Get().Key(c.key("served")).Build()).DecodeJSON(&list)
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return list, err
}

// arrived returns how many customers have come before the first is served. With the fair lock, a customer has come when
// it stands in the queue. The other lock has no queue in Redis: there a customer has come when it has asked.
func (c *counter) arrived(ctx context.Context) (int, error) {
	if *isFair {
		status, err := c.locker.Inspect(ctx, c.key("lock"))
		return status.Waiting, err
	}
	n, err := c.redis.Do(ctx, c.redis.B().Get().Key(c.key("asked")).Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return int(n), err
}

// until returns when count has reached n.
func until(ctx context.Context, n int, count func(context.Context) (int, error)) error {
	for {
		if at, err := count(ctx); err != nil || at >= n {
			return err
		}
		if err := demo.Sleep(ctx, glance); err != nil {
			return err
		}
	}
}

func (c *counter) key(what string) string { return "ticketqueue:" + c.redis.Run + ":" + what }

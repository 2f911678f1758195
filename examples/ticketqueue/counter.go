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

func openCounter(redis *demo.Redis) (c *counter, err error) {
	c = &counter{redis: redis}
	if *isFair {
		c.locker, err = fair.New(redis, holdfast.WithLease(*lease), fair.WithWaiterTTL(*lease), fair.WithGrantLease(*lease))
	} else {
		c.locker, err = rlock.New(redis, holdfast.WithLease(*lease))
	}
	return c, err
}

// visit queues a customer and serves it when it is its turn.
func (c *counter) visit(ctx context.Context, customer int) error {
	if err := c.redis.Do(ctx, c.redis.B().Incr().Key(c.redis.Key("asked")).Build()).Error(); err != nil {
		return err
	}
	err := c.locker.Do(ctx, c.redis.Key("lock"), func(ctx context.Context) error {
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
	return c.redis.Do(ctx, c.redis.B().Set().Key(c.redis.Key("served")).Value(list).Build()).Error()
}

// served returns the list.
func (c *counter) served(ctx context.Context) (list []int, err error) {
	err = c.redis.Do(ctx, c.redis.B().Get().Key(c.redis.Key("served")).Build()).DecodeJSON(&list)
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return list, err
}

// arrived returns how many customers have come before the first is served. With the fair lock, a customer has come when
// it stands in the queue. The other lock has no queue in Redis: there a customer has come when it has asked.
func (c *counter) arrived(ctx context.Context) (int, error) {
	if *isFair {
		status, err := c.locker.Inspect(ctx, c.redis.Key("lock"))
		return status.Waiting, err
	}
	return c.redis.Number(ctx, c.redis.Key("asked"))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/scripts"
)

// trial is something that locks do, tried without changing a lock.
type trial struct {
	what    string // is refused
	of      string // cannot be had then
	matters bool   // hurts locks; otherwise it is good to know
	try     func(ctx context.Context, name string) error
}

// checkTrials tries what locks do. It skips what checkRights reports, and a replica has no locks.
func (c *checkup) checkTrials(ctx context.Context) error {
	name, err := c.ownName(ctx)
	if err != nil || name == "" || c.replica || c.scriptless {
		return err
	}
	for _, t := range c.trials() {
		switch err := t.try(ctx, name); {
		case err == nil, rueidis.IsRedisNil(err), lacksRight(err), c.judged && unknown(err):
		case !wire.Replied(err) && !errors.Is(err, errUnheard):
			return err
		case errors.Is(err, holdfast.ErrWrongType):
			c.hurts(readable(err).Error(), "the lock cannot have this name", "take another name for the lock")
		default:
			report := c.note
			if t.matters {
				report = c.hurts
			}
			report(t.what+": "+readable(err).Error(), t.of+" cannot be had here", "have the server or the proxy before it allow that")
		}
	}
	return nil
}

// lacksRight reports whether Redis refuses because the user lacks a right.
func lacksRight(err error) bool {
	text := err.Error()
	return strings.Contains(text, "NOPERM ") || strings.Contains(text, "ACL failure in script: ") || // from Redis 7.2
		strings.Contains(text, "The user executing the script can't ") // in a script of Redis 7.0
}

// unknown reports whether Redis does not know a command.
func unknown(err error) bool {
	return strings.Contains(err.Error(), "nknown command ") || strings.Contains(err.Error(), "nknown Redis command ")
}

func (c *checkup) trials() []trial {
	redis := wire.NewRedis(c.Client, wire.RedisSettings{})
	fair := wire.NewFair(redis, wire.FairSettings{})
	return []trial{
		{"a script of the lock is refused", "any lock of this name", true, c.inspect},
		{"a script of fair is refused", "a fair lock of this name", c.fair, func(ctx context.Context, name string) error {
			if _, err := redis.Inspect(ctx, name); err != nil {
				return nil // already reported
			}
			_, err := fair.Inspect(ctx, name)
			if err == nil {
				_, err = fair.Queue(ctx, name)
			}
			return err
		}},
		{"TIME in a script is refused", "fair locks, semaphores, read/write locks, fences and multilock", c.fair || c.permits || c.read, c.script("TIME")},
		{"PUBSUB NUMSUB is refused", "a search for a subscription at another server, and quick grants of fair", c.fair, func(ctx context.Context, name string) error {
			return c.Do(ctx, c.B().Arbitrary("PUBSUB", "NUMSUB", scripts.Channel(name)).Build()).Error()
		}},
		{"INFO in a script is refused", "multilock with its restart guard", false, c.script("INFO", "replication")},
		{"WAIT is refused", "WithReplicas", false, func(ctx context.Context, _ string) error {
			return c.Do(ctx, c.B().Arbitrary("WAIT", "0", "1").Build()).Error() // otherwise on a connection of its own
		}},
		{"a message does not go through", "a waiter that is served immediately (it looks once in each lease)", true, c.message},
	}
}

// script is a trial of a command inside a script.
func (c *checkup) script(command ...string) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		return c.Do(ctx, c.B().Eval().Script("return redis.call(unpack(ARGV))").Numkeys(0).Arg(command...).Build()).Error()
	}
}

var errUnheard = errors.New("nothing arrives")

// message publishes a message as a release does, and listens as a waiter does, on a channel that
// no lock uses.
func (c *checkup) message(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	channel := scripts.Channel(name) + ":doctor"
	listener, release := c.Dedicate()
	defer release()
	defer listener.Close()
	heard := make(chan struct{}, 1)
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) { loop.Poke(heard) }})
	sharded := c.mode == rueidis.ClientModeCluster && wire.AtLeast(c.version, 7, 0)
	subscribe := c.B().Subscribe().Channel(channel).Build()
	publish := c.B().Eval().Script("return redis.call('PUBLISH', ARGV[1], 'doctor')").Numkeys(0).Arg(channel).Build()
	if sharded {
		subscribe = c.B().Ssubscribe().Channel(channel).Build()
		publish = c.B().Eval().Script("return redis.call('SPUBLISH', KEYS[1], 'doctor')").Numkeys(1).Key(channel).Build()
	}
	if err := listener.Do(ctx, subscribe).Error(); err != nil { // of a connection of its own
		return fmt.Errorf("%w: %w", errUnheard, err)
	}
	if err := c.Do(ctx, publish).Error(); err != nil {
		return err
	}
	select {
	case <-heard:
		return nil
	case <-ctx.Done():
		return errUnheard
	}
}

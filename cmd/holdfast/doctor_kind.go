package main

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// layout is how some lock kinds hold a key.
type layout struct {
	of      string // a lock of these kinds
	ask     string // the command that checks such a lock
	wanted  bool   // the command at hand checks such a lock
	inspect func(ctx context.Context, name string) (holdfast.Status, error)
}

func (c *checkup) layouts() []layout {
	redis := wire.NewRedis(c.Client, wire.RedisSettings{})
	return []layout{
		{"a lock of rlock or fair", "doctor without --read and --permits", c.fair || !c.read && !c.permits, redis.Inspect},
		{"a read/write lock", "doctor --read", c.read, wire.NewRWLock(redis, "").Inspect},
		{"a semaphore", "doctor --permits", c.permits, wire.NewSemaphore(redis, 1).Inspect},
	}
}

// inspect tries the scripts that read a lock of the kinds that are wanted.
func (c *checkup) inspect(ctx context.Context, name string) (wrong error) {
	for _, l := range c.layouts() {
		if !l.wanted {
			continue
		}
		switch _, err := l.inspect(ctx, name); {
		case errors.Is(err, holdfast.ErrWrongType):
			wrong = err
		case err != nil:
			return err
		}
	}
	if wrong != nil && c.tellsKind(ctx, name) {
		return nil
	}
	return wrong
}

// tellsKind reports whether a lock has the name, and adds a finding on its kind, unless that is wanted.
func (c *checkup) tellsKind(ctx context.Context, name string) bool {
	for _, l := range c.layouts() {
		if s, err := l.inspect(ctx, name); err != nil || !s.Held {
			continue
		}
		if !l.wanted {
			report := c.note // nothing says that the lock is of another kind
			if c.fair || c.read || c.permits {
				report = c.hurts
			}
			report(l.of+" has this name", "no lock of another kind can have it as well", "check it with "+l.ask+", or take another name for the lock")
		}
		return true
	}
	return false
}

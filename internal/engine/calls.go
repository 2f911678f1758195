package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// calls bounds every call to Redis. A context with a deadline per call costs
// 15 % of the speed of a lock; a deadline that many calls share and that is
// replaced every quarter of its length costs 3 %.
type calls struct {
	base    context.Context // ends with Close
	timeout time.Duration   // a call has at least this long, at most a quarter more
	current atomic.Pointer[sharedDeadline]
}

// sharedDeadline ends by itself when its time is over.
type sharedDeadline struct {
	context.Context
	cancel context.CancelFunc
	made   time.Time
}

// noDeadline ends at its deadline but does not tell it. rueidis runs a lone call
// that has a deadline synchronously on the connection, which is a quarter faster,
// but there it cannot be cancelled.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// context returns the context of one call that no caller can cancel.
func (c *calls) context() context.Context {
	shared := c.current.Load()
	if shared != nil && time.Since(shared.made) < c.timeout/4 {
		return shared
	}
	ctx, cancel := context.WithTimeout(c.base, c.timeout+c.timeout/4)
	next := &sharedDeadline{Context: ctx, cancel: cancel, made: time.Now()}
	if !c.current.CompareAndSwap(shared, next) {
		cancel()
		return c.current.Load()
	}
	return next
}

// contextFor is context, ended also by the caller's. done must be called.
func (c *calls) contextFor(caller context.Context) (ctx context.Context, done func()) {
	if caller.Done() == nil {
		return c.context(), func() {}
	}
	ctx, cancel := context.WithCancel(noDeadline{c.context()})
	stop := context.AfterFunc(caller, cancel)
	return ctx, func() { stop(); cancel() }
}

package quorum

import (
	"context"
	"time"
)

// deadline bounds the calls to nodes. A context for each call would cost more than the rest
// of the call, so many calls share one. It is replaced every quarter of its length, so a
// call has at least three quarters of it.
type deadline struct {
	context.Context
	made time.Time
}

// noDeadline ends at its deadline but does not show it. rueidis gives up the connection of a
// call with a known deadline, and with it the order of an acquire and its undoing.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// hurried is the context of calls with a shorter time-out. One without an answer does not
// mean that the node is away.
type hurried struct{ context.Context }

// bounded is the context of calls to nodes about a hold with this lease; 0: any lease.
func (q *Quorum) bounded(lease time.Duration) context.Context {
	if short := lease / 10; lease > 0 && short < q.NodeTimeout {
		return hurried{q.after(short)}
	}
	now, present := time.Now(), q.calls.Load()
	if present != nil && now.Sub(present.made) < q.NodeTimeout/4 {
		return present
	}
	next := &deadline{q.after(q.NodeTimeout), now}
	q.calls.Store(next)
	return next
}

func (q *Quorum) after(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(q.base, d)
	context.AfterFunc(ctx, cancel)
	return noDeadline{ctx}
}

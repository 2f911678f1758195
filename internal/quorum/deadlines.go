package quorum

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines bounds the calls to nodes. A context for each call costs more than the
// call's own work: many share one, which is replaced every quarter of its length, so
// that a call has at least three quarters of it.
type deadlines struct{ current atomic.Pointer[deadline] }

type deadline struct {
	context.Context
	made time.Time
}

// noDeadline ends at its deadline but does not tell it: rueidis gives up the
// connection of a call that it knows to have a deadline, and with it the order of
// an acquire and its undoing.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// hurried is the context of calls for which nodes have less time than for others:
// that they are not answered does not tell that a node is away.
type hurried struct{ context.Context }

// bounded is the context of calls to nodes about a hold of this lease; 0: of
// whatever lease.
func (q *Quorum) bounded(lease time.Duration) context.Context {
	if short := lease / 10; lease > 0 && short < q.NodeTimeout {
		return hurried{q.after(short)}
	}
	now, present := time.Now(), q.calls.current.Load()
	if present != nil && now.Sub(present.made) < q.NodeTimeout/4 {
		return present
	}
	next := &deadline{q.after(q.NodeTimeout), now}
	q.calls.current.Store(next)
	return next
}

// after is a context that ends by itself.
func (q *Quorum) after(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(q.base, d)
	context.AfterFunc(ctx, cancel)
	return noDeadline{ctx}
}

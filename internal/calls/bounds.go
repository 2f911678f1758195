package calls

import (
	"context"
	"sync/atomic"
	"time"
)

// Bounds gives calls contexts that bound them in time. A context for each call costs 15 % of
// the speed of a lock. One that many calls share, replaced every quarter of its length, costs
// 3 %. Safe for concurrent use.
type Bounds struct {
	Base    context.Context // all end with it; immutable
	Timeout time.Duration   // a call has at least this long, at most a quarter more; immutable
	Hidden  bool            // see HideDeadline; immutable
	current atomic.Pointer[shared]
}

type shared struct {
	context.Context
	parent context.Context // the same with its deadline hidden, for those that end earlier
	made   time.Time
}

// hidden ends at its deadline but does not show it. rueidis runs a lone call that has a
// deadline synchronously on the connection, which is a quarter faster. But there it cannot be
// cancelled, and at the deadline rueidis gives up the connection.
type hidden struct{ context.Context }

func (hidden) Deadline() (time.Time, bool) { return time.Time{}, false }

// HideDeadline returns ctx with its deadline hidden: a call with that context can be cancelled, and
// keeps its place among the calls of its connection.
func HideDeadline(ctx context.Context) context.Context { return hidden{ctx} }

// After returns a context that ends after d, whose deadline is hidden.
func After(base context.Context, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(base, d)
	context.AfterFunc(ctx, cancel)
	return hidden{ctx}
}

// Context returns the context of a call that no caller can cancel.
func (b *Bounds) Context() context.Context { return b.now() }

func (b *Bounds) now() *shared {
	current := b.current.Load()
	if current != nil && time.Since(current.made) < b.Timeout/4 {
		return current
	}
	ctx, cancel := context.WithTimeout(b.Base, b.Timeout+b.Timeout/4)
	context.AfterFunc(ctx, cancel)
	next := &shared{Context: ctx, parent: hidden{ctx}, made: time.Now()}
	if b.Hidden {
		next.Context = next.parent
	}
	if !b.current.CompareAndSwap(current, next) {
		cancel()
		return b.current.Load()
	}
	return next
}

// ContextFor is Context that also ends with the caller's. done must be called.
func (b *Bounds) ContextFor(caller context.Context) (ctx context.Context, done func()) {
	if caller.Done() == nil {
		return b.Context(), func() {}
	}
	ctx, cancel := context.WithCancel(b.now().parent)
	stop := context.AfterFunc(caller, cancel)
	return ctx, func() { stop(); cancel() }
}

// ContextAfter is Context that also ends when both an earlier Context and the caller's have ended. done
// must be called.
func (b *Bounds) ContextAfter(earlier, caller context.Context) (ctx context.Context, done func()) {
	now := b.now()
	if now == earlier {
		return now, func() {}
	}
	ctx, cancel := context.WithCancel(now.parent)
	stop := context.AfterFunc(earlier, func() {
		leave := context.AfterFunc(caller, cancel)
		context.AfterFunc(ctx, func() { leave() })
	})
	return ctx, func() { stop(); cancel() }
}

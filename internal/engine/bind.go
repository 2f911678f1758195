package engine

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/ctxkey"
)

// inner is a context bound to an entry: a Lock of the same engine and key that is
// given it re-enters the entry's lease.
type inner struct {
	context.Context // ends with the parent or the entry; perhaps made for another parent, see binding
	parent          context.Context
	entry           *Entry
}

// Value answers the engine itself, used as a key, with the nearest context that
// is bound to one of its entries; no other package has that key's type at hand. And it
// answers holdfast.LeaseFrom.
func (c *inner) Value(key any) any {
	if key == (ctxkey.Lease{}) {
		return c.entry.Lease()
	}
	if h, ok := key.(*Engine); ok && h == c.entry.lease.hold.engine {
		return c
	}
	if v := c.Context.Value(key); v == any(c.Context) {
		return v // by this, package context finds what to cancel together
	}
	return c.parent.Value(key)
}

// boundTo returns the entry that ctx re-enters on key, or nil.
func (h *Engine) boundTo(ctx context.Context, key string) *Entry {
	for {
		c, _ := ctx.Value(h).(*inner)
		if c == nil || c.entry.Key() == key {
			return c.bound()
		}
		ctx = c.parent
	}
}

func (c *inner) bound() *Entry {
	if c == nil {
		return nil
	}
	return c.entry
}

// binding is what ends all contexts that are bound to an entry and whose parents end
// with the same channel: that of a service, or none. So a lease that is bound ever again
// keeps one for each.
type binding struct {
	context.Context
	cancel context.CancelCauseFunc
}

// Bind derives a context that re-enters the entry's lease, and that is
// cancelled, with the reason as its cause, when the entry ends.
func (e *Entry) Bind(parent context.Context) context.Context {
	s, done := e.lease.hold.shard(), parent.Done()
	s.mu.Lock()
	b, over := e.binding(done)
	s.mu.Unlock()
	if b == nil {
		ctx, cancel := context.WithCancelCause(parent)
		b = &binding{ctx, cancel}
		s.mu.Lock()
		there, ended := e.binding(done)
		if over = ended; over == nil && there == nil {
			e.signals.bound[done] = b
		}
		s.mu.Unlock()
		switch {
		case over != nil:
			b.cancel(over)
		case there != nil: // another Bind was faster
			b.cancel(nil)
			b = there
		case done != nil:
			// A parent that ends first must not leave it behind in a long lease.
			context.AfterFunc(ctx, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				if !e.told() {
					delete(e.signals.bound, done)
				}
			})
		}
	}
	return &inner{Context: b.Context, parent: parent, entry: e}
}

// binding returns what there is for parents that end with done, under the shard's mu;
// or why the entry has ended.
func (e *Entry) binding(done <-chan struct{}) (*binding, error) {
	if over := e.err(); over != nil {
		return nil, over
	}
	told := e.listen()
	if told.bound == nil {
		told.bound = make(map[<-chan struct{}]*binding, 1)
	}
	return told.bound[done], nil
}

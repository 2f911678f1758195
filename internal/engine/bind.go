package engine

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/ctxkey"
)

// inner is a context bound to an entry: a Lock of the same engine and key that is
// given it re-enters the entry's section.
type inner struct {
	context.Context // ends with the parent or the entry; perhaps made for another parent, see binding
	parent          context.Context
	entry           *entry
}

// Value answers the engine itself, used as a key, with the nearest context that is bound
// to one of its entries; no other package has that key's type at hand. It also answers
// holdfast.LeaseFrom.
func (c *inner) Value(key any) any {
	if key == (ctxkey.Lease{}) {
		return &c.entry.lease
	}
	if h, ok := key.(*Engine); ok && h == c.entry.key().engine {
		return c
	}
	if v := c.Context.Value(key); v == any(c.Context) {
		return v // by this, package context finds what to cancel together
	}
	return c.parent.Value(key)
}

// boundTo returns the entry that ctx re-enters on key, or nil.
func (h *Engine) boundTo(ctx context.Context, key string) *entry {
	for {
		c, _ := ctx.Value(h).(*inner)
		switch {
		case c == nil:
			return nil
		case c.entry.Key() == key:
			return c.entry
		}
		ctx = c.parent
	}
}

// binding is what ends all contexts that are bound to an entry and whose parents end
// with the same channel: that of a service, or none. So a lease that is bound again and
// again keeps one for each such channel.
type binding struct {
	context.Context
	cancel context.CancelCauseFunc
}

// Bind derives a context that re-enters the entry's section, and that is cancelled, with
// the reason as its cause, when the entry ends.
func (e *entry) Bind(parent context.Context) context.Context {
	k, done := e.key(), parent.Done()
	k.Lock()
	b, over := e.binding(done)
	k.Unlock()
	if b == nil {
		ctx, cancel := context.WithCancelCause(parent)
		b = &binding{ctx, cancel}
		k.Lock()
		there, ended := e.binding(done)
		if over = ended; over == nil && there == nil {
			e.listeners.bound[done] = b
		}
		k.Unlock()
		switch {
		case over != nil:
			b.cancel(of("lease of", k.name, over))
		case there != nil: // another Bind was faster
			b.cancel(nil)
			b = there
		case done != nil:
			// A parent that ends first must not leave it behind in a long lease.
			context.AfterFunc(ctx, func() {
				k.Lock()
				defer k.Unlock()
				if !e.ended() {
					delete(e.listeners.bound, done)
				}
			})
		}
	}
	return &inner{Context: b.Context, parent: parent, entry: e}
}

// binding returns what there is for parents that end with done, or why the entry has
// ended, with the key locked.
func (e *entry) binding(done <-chan struct{}) (*binding, error) {
	if over := e.err(); over != nil {
		return nil, over
	}
	l := e.listen()
	if l.bound == nil {
		l.bound = make(map[<-chan struct{}]*binding, 1)
	}
	return l.bound[done], nil
}

package engine

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/ctxkey"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// inner is a context bound to an entry. A Lock of the same engine and key re-enters the
// entry's section when it gets this context.
type inner struct {
	context.Context // ends with the parent or the entry; perhaps made for another parent, see binding
	parent          context.Context
	entry           *entry
}

// Value returns, for the engine itself as the key, the nearest context that is bound to
// one of its entries. It also serves holdfast.LeaseFrom.
func (c *inner) Value(key any) any {
	if key == (ctxkey.Lease{}) {
		return &c.entry.lease
	}
	if h, ok := key.(*Engine); ok && h == c.entry.key().engine {
		return c
	}
	if v := c.Context.Value(key); v == any(c.Context) {
		return v // this is how package context finds the parent to attach to
	}
	return c.parent.Value(key)
}

// boundTo returns the entry that ctx re-enters on the key of this name, or nil.
func (h *Engine) boundTo(ctx context.Context, name string) *entry {
	for {
		c, _ := ctx.Value(h).(*inner)
		switch {
		case c == nil:
			return nil
		case c.entry.key().Name == name:
			return c.entry
		}
		ctx = c.parent
	}
}

// binding ends the contexts that are bound to one entry and have parents with the same
// Done channel: that of a service, or none. A lease that is bound again and again keeps
// one binding per channel.
type binding struct {
	context.Context
	cancel context.CancelCauseFunc
}

// Bind derives a context that re-enters the entry's section. The end of the entry cancels
// it, with the reason as its cause.
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
			b.cancel(errs.Of("lease of", e.Key(), over))
		case there != nil: // another Bind was faster
			b.cancel(nil)
			b = there
		case done != nil:
			// A parent that ends first must not leave its binding behind in a long lease.
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

// binding returns the binding for parents with that Done channel, nil if there is none, or
// why the entry has ended. The key is locked.
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

package engine

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/ctxkey"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// boundContext is a context bound to an entry. A Lock of the same engine and key re-enters the
// entry's section when it gets this context.
type boundContext struct {
	context.Context // ends with the parent or the entry; perhaps made for another parent, see binding
	parent          context.Context
	entry           *entry
}

// Value returns, for the engine itself as the key, the nearest context that is bound to
// one of its entries. It also serves holdfast.LeaseFrom.
func (in *boundContext) Value(key any) any {
	if key == (ctxkey.Lease{}) {
		return &in.entry.lease
	}
	if e, ok := key.(*Engine); ok && e == in.entry.key().engine {
		return in
	}
	if key == attachKey {
		return in.Context
	}
	return in.parent.Value(key)
}

// attachKey is the key by which package context finds the parent to attach to. Only for this one, a bound
// context asks the context that ends with the entry. Were both parents asked for others, the calls would
// double with each lease to which a context is bound.
var attachKey = func() any {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	asked := &question{Context: over}
	_ = context.Cause(asked)
	return asked.key
}()

// question is a context that notes the key that it is asked for.
type question struct {
	context.Context
	key any
}

func (q *question) Value(key any) any {
	q.key = key
	return nil
}

// boundTo returns the entry that ctx re-enters on the key of this name, or nil.
func (e *Engine) boundTo(ctx context.Context, name string) *entry {
	for {
		in, _ := ctx.Value(e).(*boundContext)
		switch {
		case in == nil:
			return nil
		case in.entry.key().Name == name:
			return in.entry
		}
		ctx = in.parent
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
func (en *entry) Bind(parent context.Context) context.Context {
	k, done := en.key(), parent.Done()
	k.Lock()
	b, cause := en.binding(done)
	k.Unlock()
	if b == nil {
		ctx, cancel := context.WithCancelCause(parent)
		b = &binding{ctx, cancel}
		k.Lock()
		there, ended := en.binding(done)
		if cause = ended; cause == nil && there == nil {
			en.listeners.bound[done] = b
		}
		k.Unlock()
		switch {
		case cause != nil:
			b.cancel(errs.Of("lease of", en.Key(), cause))
		case there != nil: // another Bind was faster
			b.cancel(nil)
			b = there
		case done != nil:
			// A parent that ends first must not leave its binding behind in a long lease.
			context.AfterFunc(ctx, func() {
				k.Lock()
				defer k.Unlock()
				if !en.ended() {
					delete(en.listeners.bound, done)
				}
			})
		}
	}
	return &boundContext{Context: b.Context, parent: parent, entry: en}
}

// binding returns the binding for parents with that Done channel, nil if there is none, or
// why the entry has ended. The key's mutex is held.
func (en *entry) binding(done <-chan struct{}) (*binding, error) {
	if cause := en.err(); cause != nil {
		return nil, cause
	}
	l := en.listen()
	if l.bound == nil {
		l.bound = make(map[<-chan struct{}]*binding, 1)
	}
	return l.bound[done], nil
}

package hall

import "context"

// inner is a context bound to an entry: a Lock of the same hall and key that is
// given it re-enters the entry's lease.
type inner struct {
	context.Context
	cancel context.CancelCauseFunc
	entry  *Entry
}

// Value answers the hall itself, used as a key, with the nearest context that
// is bound to one of its entries; no other package has that key's type at hand.
func (c *inner) Value(key any) any {
	if h, ok := key.(*Hall); ok && h == c.entry.lease.hold.hall {
		return c
	}
	return c.Context.Value(key)
}

// boundTo returns the entry that ctx re-enters on key, or nil.
func (h *Hall) boundTo(ctx context.Context, key string) *Entry {
	for {
		c, _ := ctx.Value(h).(*inner)
		if c == nil || c.entry.Key() == key {
			return c.bound()
		}
		ctx = c.Context
	}
}

func (c *inner) bound() *Entry {
	if c == nil {
		return nil
	}
	return c.entry
}

// Bind derives a context that re-enters the entry's lease, and that is
// cancelled, with the reason as its cause, when the entry ends.
func (e *Entry) Bind(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	c := &inner{Context: ctx, cancel: cancel, entry: e}
	s := e.lease.hold.shard()
	s.mu.Lock()
	over := e.err()
	if over == nil {
		told := e.listen()
		if told.bound == nil {
			told.bound = make(map[*inner]struct{}, 1)
		}
		told.bound[c] = struct{}{}
	}
	s.mu.Unlock()
	if over != nil {
		c.cancel(over)
	} else if parent.Done() != nil {
		// A parent that ends first must not leave its child behind in a long lease.
		context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !e.told() {
				delete(e.signals.bound, c)
			}
		})
	}
	return c
}

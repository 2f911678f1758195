package rlock

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/scripts"
)

// Inspect returns who holds key. One round trip. ErrUnavailable or ErrUnknown if
// Redis does not answer; refusals as they are; ErrClosed.
func (l *Locker) Inspect(ctx context.Context, key string) (Status, error) {
	said, err := engine.Call(ctx, l.engine, "inspect", key, func(ctx context.Context) (scripts.Holder, error) {
		return l.node.Inspect(ctx, key)
	})
	if err != nil || said.Owner == "" {
		return Status{}, err
	}
	return Status{Held: true, Owner: said.Owner, Entries: said.Entries, Remaining: said.Remaining}, nil
}

// ForceUnlock frees key, whoever holds it, and reports whether it was held. It
// is for operators: a lease that this locker had when it was called ends at once,
// other holders learn of it at their next renewal, with a fixed lease not at all,
// and believe in their lease until then. What is at key and is no lock, an
// application's data or a read/write lock of Redisson's, is left as it is and is an
// error. One round trip.
// ErrUnknown: the key may have been freed or not. Other errors as for Inspect.
func (l *Locker) ForceUnlock(ctx context.Context, key string) (held bool, err error) {
	return l.engine.Force(ctx, key, func(ctx context.Context) (bool, error) {
		return l.node.ForceRelease(ctx, key)
	})
}

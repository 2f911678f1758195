package fair

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// Inspect returns who holds key, and how many wait for it; see [holdfast.Locker]. One round trip.
func (l *Locker) Inspect(ctx context.Context, key string) (Status, error) {
	return engine.Call(ctx, l.engine, "inspect", key, func(ctx context.Context) (Status, error) {
		said, waiting, err := l.backend.Inspect(ctx, key)
		return Status{
			Held: said.Owner != "", Owner: said.Owner, Entries: said.Entries, Remaining: said.Remaining,
			Waiting: waiting,
		}, err
	})
}

// ForceUnlock frees key, whoever holds it, gives it to the next waiter and reports whether it was held; it is for
// operators, see [holdfast.Locker]. One round trip.
func (l *Locker) ForceUnlock(ctx context.Context, key string) (held bool, err error) {
	return l.engine.Force(ctx, key, func(ctx context.Context) (bool, error) {
		return l.backend.ForceRelease(ctx, key)
	})
}

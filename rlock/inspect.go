package rlock

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/scripts"
)

// Inspect returns who holds key; see [holdfast.Locker]. One round trip.
func (l *Locker) Inspect(ctx context.Context, key string) (Status, error) {
	said, err := engine.Call(ctx, l.engine, "inspect", key, func(ctx context.Context) (scripts.Holder, error) {
		return l.backend.Inspect(ctx, key)
	})
	if err != nil || said.Owner == "" {
		return Status{}, err
	}
	return Status{Held: true, Owner: said.Owner, Entries: said.Entries, Remaining: said.Remaining}, nil
}

// ForceUnlock frees key, whoever holds it, and reports whether it was held; it is for
// operators, see [holdfast.Locker]. One round trip.
func (l *Locker) ForceUnlock(ctx context.Context, key string) (held bool, err error) {
	return l.engine.Force(ctx, key, func(ctx context.Context) (bool, error) {
		return l.backend.ForceRelease(ctx, key)
	})
}

package engine

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// The calls of operators for one key: Inspect and ForceUnlock.

// OnKey runs f with a bounded context that also ends with the caller's, and with the name of
// key. Close waits for it. Errors name the call by what.
func OnKey[T any](caller context.Context, e *Engine, what, key string, f func(context.Context, string) (T, error)) (none T, err error) {
	defer func() { err = errs.Of(what, key, err) }()
	name, err := e.nameOf(key)
	if err != nil {
		return none, err
	}
	return operate(caller, e, name, func(ctx context.Context) (T, error) { return f(ctx, name) })
}

// operate is OnKey for the key of a name, or "" for several keys.
func operate[T any](caller context.Context, e *Engine, name string, f func(context.Context) (T, error)) (none T, err error) {
	if caller.Err() != nil {
		return none, errs.DoneBefore(caller)
	}
	if !e.With(name, func(*Key) { e.Calls.Begin() }) {
		return none, holdfast.ErrClosed
	}
	defer e.Calls.End()
	ctx, done := e.Calls.ContextFor(caller)
	defer done()
	value, err := calls.Detached(ctx, e.Calls, name, f)
	err = calls.WithOutcome(e.Calls.Public(err))
	if err != nil && caller.Err() != nil {
		return none, errs.WithContext(caller, err)
	}
	return value, err
}

// Inspect returns the holder of key.
func (e *Engine) Inspect(caller context.Context, key string) (holdfast.Status, error) {
	return OnKey(caller, e, "inspect", key, func(ctx context.Context, name string) (holdfast.Status, error) {
		s, err := e.backend.Inspect(ctx, name)
		return e.completed(key, s), err
	})
}

// ForceUnlock frees key from any holder. If that succeeds, the leases that this locker had on key
// before the call, those of readers too, end immediately.
func (e *Engine) ForceUnlock(caller context.Context, key string) (bool, error) {
	name := e.Prefix + key
	var holds []*Hold
	for _, half := range []*Engine{e, e.readers} {
		if half != nil {
			half.With(name, func(k *Key) { holds = slices.AppendSeq(holds, k.holds()) })
		}
	}
	held, err := OnKey(caller, e, "force-unlock", key, e.backend.ForceRelease)
	for _, h := range holds {
		if err == nil {
			h.Key.engine.lose(h, errs.ErrForced)
		}
	}
	return held, err
}

// completed is the state of a key with what Redis does not know of it.
func (e *Engine) completed(key string, s holdfast.Status) holdfast.Status {
	s.Key = key
	if e.Holds == ManyHolds { // nobody else knows of them
		e.With(e.Prefix+key, func(k *Key) { s.Waiting = k.Waiting() })
	}
	return s
}

package calls

import (
	"context"

	"github.com/holdfast-go/holdfast/scripts"
)

// Work leaves the goroutine of its caller in three ways. The caller waits for what is [Detached],
// but only until ctx ends. Only Close waits for what is in the [Calls.Background], which other such
// work begins. [Calls.Go] is for the rest of the background, and does nothing after Close.

// Detached makes a call to Redis for the key of a name; "": for several keys. Unless its
// server has just answered, the call runs on a goroutine of its own, and the caller leaves
// when ctx ends, with an unknown outcome. rueidis does not watch the context while a call
// waits for a dial or its handshake, which may take 5 s.
func Detached[T any](ctx context.Context, c *Calls, name string, call func(context.Context) (T, error)) (T, error) {
	if c.Answering(name) {
		return call(ctx)
	}
	return Detach(ctx, func(f func()) error { c.Background(f); return nil }, call)
}

// DetachedOf is Detached for a method of a. It does without a closure, which each lock would allocate.
func DetachedOf[A, T any](ctx context.Context, c *Calls, name string, a A, call func(A, context.Context) (T, error)) (T, error) {
	if c.Answering(name) {
		return call(a, ctx)
	}
	return Detached(ctx, c, name, func(ctx context.Context) (T, error) { return call(a, ctx) })
}

// Detach makes a call on a goroutine of its own, which spawn starts or refuses to, and leaves
// when ctx ends.
func Detach[T any](ctx context.Context, spawn func(func()) error, call func(context.Context) (T, error)) (T, error) {
	var none T
	came := make(chan scripts.Result[T], 1)
	if err := spawn(func() {
		value, err := call(ctx)
		came <- scripts.Result[T]{Value: value, Err: err}
	}); err != nil {
		return none, err
	}
	select {
	case a := <-came:
		return a.Value, a.Err
	case <-ctx.Done():
		return none, ErrNoAnswer
	}
}

// DetachedNoted is Detached with NotePublic.
func DetachedNoted[T any](ctx context.Context, c *Calls, name string, call func(context.Context) (T, error)) (T, error) {
	value, err := Detached(ctx, c, name, call)
	return value, c.NotePublic(name, err)
}

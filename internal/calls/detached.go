package calls

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Work leaves the goroutine of its caller in three ways. [Detached]: the caller waits, but only until
// ctx ends. [Calls.Background]: only Close waits; it says who may call it. [Calls.TryGo]: the same for
// any other caller; after Close, it does nothing.

// Detached makes a call to Redis for the key of a name; "": for several keys. Unless its
// server has just answered, the call runs on a goroutine of its own, and the caller leaves
// when ctx ends, with an unknown outcome. rueidis does not watch the context while a call
// waits for a dial or its handshake, which may take 5 s.
func Detached[T any](ctx context.Context, c *Calls, name string, call func(context.Context) (T, error)) (T, error) {
	if c.Answering(name) {
		return call(ctx)
	}
	return Detach(ctx, func(f func()) bool { c.Background(f); return true }, nil, call)
}

// Detach makes a call on a goroutine of its own, and leaves when ctx ends. spawn starts the
// goroutine; if it does not, Detach fails with refused.
func Detach[T any](ctx context.Context, spawn func(func()) bool, refused error, call func(context.Context) (T, error)) (none T, _ error) {
	came := make(chan wire.Result[T], 1)
	if !spawn(func() {
		value, err := call(ctx)
		came <- wire.Result[T]{Value: value, Err: err}
	}) {
		return none, refused
	}
	select {
	case a := <-came:
		return a.Value, a.Err
	case <-ctx.Done():
		return none, ErrNoAnswer
	}
}

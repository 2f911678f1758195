package single

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/batch"
	"github.com/holdfast-go/holdfast/scripts"
)

// few calls under way are each made alone. With 8 goroutines that lock and unlock, two
// or three share a call and wait for each other for longer than that saves (a tenth
// fewer cycles); with 32 it saves a fifth of what they cost.
const few = 8

// batcher has calls that are made at the same time go out as one, unless they are few.
// Safe for concurrent use.
type batcher[K comparable, Q, A any] struct {
	batch.Batcher[K, Q, scripts.Result[A]]
	underWay atomic.Int64                                                                   // calls of do
	detached func(f func(context.Context)) bool                                             // runs f beside its caller, with the time of a call; false: not any more. Immutable
	one      func(ctx context.Context, kind K, ask Q) (A, error)                            // calls for one; immutable
	many     func(ctx context.Context, kind K, asks []Q, results []scripts.Result[A]) error // calls for several, and fills results; immutable
}

func newBatcher[K comparable, Q, A any](
	detached func(f func(context.Context)) bool,
	one func(ctx context.Context, kind K, ask Q) (A, error),
	many func(ctx context.Context, kind K, asks []Q, results []scripts.Result[A]) error,
) *batcher[K, Q, A] {
	return &batcher[K, Q, A]{detached: detached, one: one, many: many}
}

// none is what calls have in common that are all alike.
type none struct{}

// alike makes a call for several one that is of the kind none.
func alike[Q, A any](many func(context.Context, []Q, []scripts.Result[A]) error) func(context.Context, none, []Q, []scripts.Result[A]) error {
	return func(ctx context.Context, _ none, asks []Q, results []scripts.Result[A]) error {
		return many(ctx, asks, results)
	}
}

// errAlone: a call has done nothing, perhaps by a fault of one that shared it. Each has
// to ask for itself.
var errAlone = errors.New("to be asked alone")

// do makes a call, alone or with others. If ctx ends first the outcome is unknown; the
// call of the others goes on.
func (s *batcher[K, Q, A]) do(ctx context.Context, kind K, ask Q) (zero A, err error) {
	defer s.underWay.Add(-1)
	if s.underWay.Add(1) <= few || ctx.Err() != nil {
		return s.one(ctx, kind, ask)
	}
	c, place := s.Join(kind, ask, false)
	if place == 0 {
		runtime.Gosched()
		s.Close(c)
		if len(c.Asks) == 1 {
			return s.one(ctx, kind, ask)
		}
		s.begin(c)
	}
	select {
	case <-c.Came:
	case <-ctx.Done():
		return zero, ctx.Err()
	}
	switch c.Err {
	case nil:
		return c.Answers[place].Value, c.Answers[place].Err
	case errAlone:
		return s.one(ctx, kind, ask)
	}
	return zero, c.Err
}

// begin has a call made beside those that ask: any of them may leave.
func (s *batcher[K, Q, A]) begin(c *batch.Call[K, Q, scripts.Result[A]]) {
	if !s.detached(func(ctx context.Context) {
		defer close(c.Came)
		c.Answers = make([]scripts.Result[A], len(c.Asks))
		if c.Err = s.many(ctx, c.Kind, c.Asks, c.Answers); scripts.OutcomeOf(c.Err) == scripts.Refused {
			c.Err = errAlone
		}
	}) {
		c.Err = errAlone
		close(c.Came)
	}
}

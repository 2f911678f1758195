package single

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/batch"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// few is the number of calls under way up to which each goes out alone. With 8 goroutines
// that lock and unlock, batches of two or three cost more by waiting than they save (a tenth
// of the cycles). With 32 goroutines, they save a fifth of the cost.
const few = 8

// batcher sends calls that are made at the same time as a batch, unless they are few. All go out
// alone where a script has keys of one slot, and where replicas must confirm each. Safe for concurrent use.
type batcher[Q, A any] struct {
	batch.Batcher[struct{}, Q, wire.Result[A]]
	redis    *wire.Redis                                                         // immutable
	underWay atomic.Int64                                                        // calls of do
	spawn    func(f func(context.Context)) bool                                  // calls.Calls.TryGo; immutable
	one      func(ctx context.Context, ask Q) (A, error)                         // calls for one; immutable
	many     func(ctx context.Context, asks []Q, results []wire.Result[A]) error // calls for several, and fills results; immutable
}

func newBatcher[Q, A any](
	s server,
	one func(ctx context.Context, ask Q) (A, error),
	many func(ctx context.Context, asks []Q, results []wire.Result[A]) error,
) *batcher[Q, A] {
	return &batcher[Q, A]{redis: s.redis, spawn: s.calls.TryGo, one: one, many: many}
}

// errAlone says that a batch had no effect, perhaps by the fault of one of its members.
// Each member then makes its call alone.
var errAlone = errors.New("to be called alone")

// do makes a call, alone or in a batch. If ctx ends first, the outcome is unknown; the
// batch goes on.
func (b *batcher[Q, A]) do(ctx context.Context, ask Q) (zero A, err error) {
	defer b.underWay.Add(-1)
	if b.underWay.Add(1) <= few || b.redis.BySlot() || b.redis.Replicas > 0 || ctx.Err() != nil {
		return b.one(ctx, ask)
	}
	c, index := b.Join(struct{}{}, ask, false)
	if index == 0 {
		runtime.Gosched()
		b.Seal(c)
		if len(c.Asks) == 1 {
			return b.one(ctx, ask)
		}
		b.begin(c)
	}
	select {
	case <-c.Came:
	case <-ctx.Done():
		return zero, ctx.Err()
	}
	switch c.Err {
	case nil:
		return c.Answers[index].Value, c.Answers[index].Err
	case errAlone:
		return b.one(ctx, ask)
	}
	return zero, c.Err
}

// begin sends a batch on a goroutine of its own, so that any member may leave.
func (b *batcher[Q, A]) begin(c *batch.Call[struct{}, Q, wire.Result[A]]) {
	if !b.spawn(func(ctx context.Context) {
		defer close(c.Came)
		c.Answers = make([]wire.Result[A], len(c.Asks))
		if c.Err = b.many(ctx, c.Asks, c.Answers); wire.OutcomeOf(c.Err) == wire.Refused {
			c.Err = errAlone
		}
	}) {
		c.Err = errAlone
		close(c.Came)
	}
}

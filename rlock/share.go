package rlock

import (
	"context"
	"runtime"

	"github.com/holdfast-go/holdfast/internal/gather"
	"github.com/holdfast-go/holdfast/scripts"
)

// sharing has calls that are made at the same time go out as one. Who is alone calls
// as if there were no sharing. K is what calls have to have in common, Q what one
// asks for, A the answer. Safe for concurrent use.
type sharing[K comparable, Q, A any] struct {
	gather.Gatherer[K, asking[Q, A]]
	one   func(ctx context.Context, kind K, ask Q) (A, error)          // calls for one; immutable
	many  func(ctx context.Context, kind K, asks []asking[Q, A]) error // calls for several, and fills in their answers; immutable
	aside func(f func(context.Context)) bool                           // runs f beside the caller, with the time of a call; false: closed. Immutable
}

// asking is what one of several asks for, and what comes of it.
type asking[Q, A any] struct {
	ask    Q
	answer A
	err    error
	alone  bool // the call has done nothing, perhaps by a fault of another's: to be repeated for this one
}

// do makes a call, alone or with others. If ctx ends first the outcome is unknown; the
// call of the others goes on.
func (s *sharing[K, Q, A]) do(ctx context.Context, kind K, ask Q) (A, error) {
	c, place := s.Join(kind, asking[Q, A]{ask: ask}, false)
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
		var none A
		return none, ctx.Err()
	}
	a := &c.Asks[place]
	if a.alone {
		return s.one(ctx, kind, ask)
	}
	return a.answer, a.err
}

// begin has a call made beside those who ask: any of them may leave.
func (s *sharing[K, Q, A]) begin(c *gather.Call[K, asking[Q, A]]) {
	if !s.aside(func(ctx context.Context) {
		err := s.many(ctx, c.Kind, c.Asks)
		s.end(c, err, scripts.OutcomeOf(err) == scripts.Refused)
	}) {
		s.end(c, nil, true)
	}
}

// end tells those who ask that their call is over.
func (s *sharing[K, Q, A]) end(c *gather.Call[K, asking[Q, A]], err error, alone bool) {
	for i := range c.Asks {
		a := &c.Asks[i]
		if a.alone = alone; err != nil {
			a.err = err
		}
	}
	close(c.Came)
}

package gather

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/scripts"
)

// Sharing has calls that are made at the same time go out as one. Who is alone calls
// as if there were no sharing. K is what calls have to have in common, Q what one
// asks for, A the answer. Safe for concurrent use.
type Sharing[K comparable, Q, A any] struct {
	Gatherer[K, Asking[Q, A]]
	UnderWay atomic.Int64                                                 // calls of Do
	One      func(ctx context.Context, kind K, ask Q) (A, error)          // calls for one; immutable
	Many     func(ctx context.Context, kind K, asks []Asking[Q, A]) error // calls for several, and fills in their answers; immutable
	Aside    func(f func(context.Context)) bool                           // runs f beside the caller, with the time of a call; false: closed. Immutable
}

// Asking is what one of several asks for, and what comes of it.
type Asking[Q, A any] struct {
	Ask    Q
	Answer A
	Err    error
	alone  bool // the call has done nothing, perhaps by a fault of another's: to be repeated for this one
}

// Do makes a call, alone or with others. If ctx ends first the outcome is unknown; the
// call of the others goes on.
func (s *Sharing[K, Q, A]) Do(ctx context.Context, kind K, ask Q) (A, error) {
	defer s.UnderWay.Add(-1)
	if s.UnderWay.Add(1) == 1 { // nobody is likely to come: where processors are busy, to give way costs much
		return s.One(ctx, kind, ask)
	}
	c, place := s.Join(kind, Asking[Q, A]{Ask: ask}, false)
	if place == 0 {
		runtime.Gosched()
		s.Close(c)
		if len(c.Asks) == 1 {
			return s.One(ctx, kind, ask)
		}
		s.Begin(c)
	}
	select {
	case <-c.Came:
	case <-ctx.Done():
		var none A
		return none, ctx.Err()
	}
	a := &c.Asks[place]
	if a.alone {
		return s.One(ctx, kind, ask)
	}
	return a.Answer, a.Err
}

// Begin has a call made beside those who ask: any of them may leave.
func (s *Sharing[K, Q, A]) Begin(c *Call[K, Asking[Q, A]]) {
	if !s.Aside(func(ctx context.Context) {
		err := s.Many(ctx, c.Kind, c.Asks)
		s.end(c, err, scripts.OutcomeOf(err) == scripts.Refused)
	}) {
		s.end(c, nil, true)
	}
}

// end tells those who ask that their call is over.
func (s *Sharing[K, Q, A]) end(c *Call[K, Asking[Q, A]], err error, alone bool) {
	for i := range c.Asks {
		a := &c.Asks[i]
		if a.alone = alone; err != nil {
			a.Err = err
		}
	}
	close(c.Came)
}

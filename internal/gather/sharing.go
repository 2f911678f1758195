package gather

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/scripts"
)

// Few calls under way are each made alone. With 8 goroutines that lock and unlock, two
// or three share a call and wait for each other for longer than that saves (a tenth
// fewer cycles); with 32 it saves a fifth of what they cost.
const Few = 8

// Sharing has calls that are made at the same time go out as one, unless they are few.
// Safe for concurrent use.
type Sharing[K comparable, Q, A any] struct {
	Gatherer[K, Q, A]
	UnderWay atomic.Int64                                                   // calls of Do
	One      func(ctx context.Context, kind K, ask Q) (A, error)            // immutable
	Many     func(ctx context.Context, kind K, asks []Q, answers []A) error // immutable
	Detached func(f func(context.Context)) bool                             // immutable
}

// NewSharing returns a Sharing of calls that one makes for one ask, and many for several,
// filling answers. detached runs a function beside its caller, with the time of a call; it
// returns false when it does not any more.
func NewSharing[K comparable, Q, A any](
	one func(ctx context.Context, kind K, ask Q) (A, error),
	many func(ctx context.Context, kind K, asks []Q, answers []A) error,
	detached func(f func(context.Context)) bool,
) *Sharing[K, Q, A] {
	return &Sharing[K, Q, A]{One: one, Many: many, Detached: detached}
}

// errAlone: a call has done nothing, perhaps by a fault of one who shared it. Each has
// to ask for itself.
var errAlone = errors.New("to be asked alone")

// Do makes a call, alone or with others. If ctx ends first the outcome is unknown; the
// call of the others goes on.
func (s *Sharing[K, Q, A]) Do(ctx context.Context, kind K, ask Q) (none A, err error) {
	defer s.UnderWay.Add(-1)
	if s.UnderWay.Add(1) <= Few || ctx.Err() != nil {
		return s.One(ctx, kind, ask)
	}
	c, place := s.Join(kind, ask, false)
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
		return none, ctx.Err()
	}
	switch c.Err {
	case nil:
		return c.Answers[place], nil
	case errAlone:
		return s.One(ctx, kind, ask)
	}
	return none, c.Err
}

// Begin has a call made beside those who ask: any of them may leave.
func (s *Sharing[K, Q, A]) Begin(c *Call[K, Q, A]) {
	if !s.Detached(func(ctx context.Context) {
		defer close(c.Came)
		c.Answers = make([]A, len(c.Asks))
		if c.Err = s.Many(ctx, c.Kind, c.Asks, c.Answers); scripts.OutcomeOf(c.Err) == scripts.Refused {
			c.Err = errAlone
		}
	}) {
		c.Err = errAlone
		close(c.Came)
	}
}

package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// A call is repeated as long as Redis does not answer, and as its caller, the lease and the engine last.
func TestG4_RideOut(t *testing.T) {
	down, no := errors.New("no answer"), refusal{errors.New("no")}
	returns := func(err error) func(int, *Engine, func()) error {
		return func(int, *Engine, func()) error { return err }
	}
	for name, c := range map[string]struct {
		once   bool
		call   func(n int, e *Engine, leave func()) error
		want   error
		repeat bool
	}{
		"answered": {false, func(n int, _ *Engine, _ func()) error {
			if n < 3 {
				return down
			}
			return nil
		}, nil, true},
		"too long":       {false, returns(down), holdfast.ErrUnknown, true},
		"without a wait": {true, returns(down), holdfast.ErrUnknown, false},
		"refused":        {false, returns(no), no, false},
		"lost":           {false, returns(errs.Lost(down)), holdfast.ErrLost, false},
		"caller goes":    {false, func(_ int, _ *Engine, leave func()) error { leave(); return down }, context.Canceled, false},
		"Close":          {false, func(_ int, e *Engine, _ func()) error { go e.Close(); return down }, holdfast.ErrClosed, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(t, newObedient(), asItIs)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				n, start := 0, time.Now()
				err := e.RideOut(ctx, !c.once, func(context.Context) error { n++; return c.call(n, e, leave) })
				require.ErrorIs(t, err, c.want)
				require.Equal(t, c.repeat, n > 1)
				require.Equal(t, c.repeat, time.Since(start) > 0, "nor is there a pause")
				require.Less(t, time.Since(start), e.Lease+2*time.Second)
			})
		})
	}
}

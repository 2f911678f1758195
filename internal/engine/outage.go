package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// RideOut repeats a call until it succeeds, or fails in a way that no repetition cures: Redis refuses it,
// or its error says that a lease is over, which RideOut returns as it is. It also ends with ctx, with the
// engine, and MaxOutage after it began. Without wait, it makes the call once.
func (e *Engine) RideOut(ctx context.Context, wait bool, call func(context.Context) error) error {
	began, retry := time.Now(), loop.Backoff{}
	for {
		bounded, done := e.Calls.ContextFor(ctx)
		err := call(bounded)
		done()
		if err == nil || errs.LeaseOver(err) {
			return err
		}
		if ctx.Err() == nil {
			if wire.OutcomeOf(err).Final() || !wait || time.Since(began) >= *e.MaxOutage {
				return calls.WithOutcome(err)
			}
			select {
			case <-time.After(retry.Within(e.Lease)):
			case <-ctx.Done():
			case <-e.closed:
				return holdfast.ErrClosed
			}
		}
		if ctx.Err() != nil {
			return errs.WithWait(ctx, calls.WithOutcome(err))
		}
	}
}

// Outage is a time in which Redis does not answer, or only that it cannot serve.
type Outage struct {
	since time.Time // start of the first call that failed
	Err   error     // of the last one
}

// Note begins, extends or ends an outage with the result of a call that began at start.
func (out *Outage) Note(start time.Time, err error) *Outage {
	if err == nil {
		return nil
	}
	if out == nil {
		out = &Outage{since: start}
	}
	out.Err = calls.WithOutcome(err)
	return out
}

// Overdue says why w must not wait any longer after a call that failed with err: Redis refused it, or
// did not answer for too long. nil: w may wait.
func (k *Key) Overdue(w *Waiter, err error, out *Outage) error {
	if wire.OutcomeOf(err).Final() {
		return calls.WithOutcome(err)
	}
	if min(time.Since(out.since), k.engine.Calls.Now()-w.Since) >= *k.engine.MaxOutage {
		return out.Err
	}
	return nil
}

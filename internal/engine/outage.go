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
	since time.Time // start of the first attempt that failed
	Err   error     // of the last one
}

// Note begins, extends or ends an outage with the result of an attempt.
func (out *Outage) Note(a Attempt) *Outage {
	if a.Err == nil {
		return nil
	}
	if out == nil {
		out = &Outage{since: a.Start}
	}
	out.Err = a.Failure()
	return out
}

// Overdue says why w must not wait any longer after a failed attempt: Redis refused it, or
// did not answer for too long. nil: w may wait.
func (k *Key) Overdue(w *Waiter, a Attempt, out *Outage) error {
	if wire.OutcomeOf(a.Err).Final() {
		return a.Failure()
	}
	if min(time.Since(out.since), k.engine.Calls.Now()-w.Since) >= *k.engine.MaxOutage {
		return out.Err
	}
	return nil
}

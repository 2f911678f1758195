package calls

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// ErrNoAnswer says that Redis did not answer a call in time.
var ErrNoAnswer = errors.New("no answer in time")

// WithOutcome joins the error of a call to Redis with what is known of its outcome. It leaves a refusal
// unchanged.
func WithOutcome(err error) error {
	switch wire.OutcomeOf(err) {
	case wire.Unavailable:
		return errs.With(holdfast.ErrUnavailable, err)
	case wire.Unknown:
		return errs.With(holdfast.ErrUnknown, err)
	}
	return err
}

// Public hides the contexts of calls: an error may show only that of the caller. It
// also names the server, as network errors do by themselves.
func (c *Calls) Public(err error) error {
	if err == nil {
		return nil
	}
	op, network := errors.AsType[*net.OpError](err)
	switch {
	case network && op.Op == "dial" && op.Timeout():
		// It also matches DeadlineExceeded, but nothing was sent.
		return &net.OpError{Op: op.Op, Net: op.Net, Addr: op.Addr, Err: ErrNoAnswer}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = ErrNoAnswer
	case network:
		return err
	}
	if c.server == nil || wire.Replied(err) || wire.OutcomeOf(err) == wire.Refused {
		return err
	}
	return fmt.Errorf("%s: %w", c.server(), err)
}

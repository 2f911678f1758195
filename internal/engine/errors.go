package engine

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
)

var (
	errNoAnswer = errors.New("no answer in time")
	errTooLate  = errors.New("the reply came after the lease was over")
)

// errHeldBack says why an acquire was not sent, see undoing.
var errHeldBack = heldBack{errors.New("redis does not answer, and too many attempts wait to be undone")}

type heldBack struct{ error }

func (heldBack) Outcome() scripts.Outcome { return scripts.Unavailable }

// known joins the error of a call to Redis with what is known of its outcome. A refusal
// stays as it is.
func known(err error) error {
	switch scripts.OutcomeOf(err) {
	case scripts.Unavailable:
		return errs.Failed(holdfast.ErrUnavailable, err)
	case scripts.Unknown:
		return errs.Failed(holdfast.ErrUnknown, err)
	}
	return err
}

// ours hides the contexts of the engine: an error may show only that of the caller. It
// also names the server, as network errors do by themselves.
func (c *Calls) ours(err error) error {
	if err == nil {
		return nil
	}
	op := (*net.OpError)(nil)
	network := errors.As(err, &op)
	switch {
	case network && op.Op == "dial" && op.Timeout():
		// It also matches DeadlineExceeded, but nothing was sent.
		return &net.OpError{Op: op.Op, Net: op.Net, Addr: op.Addr, Err: errNoAnswer}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = errNoAnswer
	case network:
		return err
	}
	if c.server == nil || scripts.Replied(err) || scripts.OutcomeOf(err) == scripts.Refused {
		return err
	}
	return fmt.Errorf("%s: %w", c.server(), err)
}

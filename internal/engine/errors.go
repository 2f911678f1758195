package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

var (
	errNoAnswer = errors.New("no answer in time")
	errForced   = errors.New("force-unlocked")
	errTooLate  = errors.New("the reply came when the lease was already over")
	errWaits    = errors.New("holdfast: WaitAtMost is for Do and Lock: TryLock and TryLockFor say how long they wait")
	errNested   = errors.New("holdfast: FixedLease and MaxHold are refused on a nested entry: it takes the lease as it is")
)

// errHeldBack is why an acquire was not sent, see undoing.
var errHeldBack = heldBack{}

type heldBack struct{}

func (heldBack) Error() string            { return "redis does not answer, and too much is to be undone" }
func (heldBack) Outcome() scripts.Outcome { return scripts.Unavailable }

// lost is the end of a lease by loss, with its reason.
func lost(why error) error { return fmt.Errorf("%w: %w", holdfast.ErrLost, why) }

// ended joins the error of a context that ended a call to what the call knew.
// Both the context's error and its cause stay matchable.
func ended(ctx context.Context, known error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", known, cause)
	}
	return fmt.Errorf("%w: %w: %w", known, err, cause)
}

// failed is the error of a failed call to Redis: what is known, and the cause.
func failed(known, cause error) error { return fmt.Errorf("%w: %w", known, cause) }

// ours hides that a call to Redis was ended by a context of the engine's own:
// only the caller's context may be seen in an error.
func ours(err error) error {
	if err == nil {
		return nil
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" && op.Timeout() {
		// It matches DeadlineExceeded, too; and surely nothing was sent.
		return &net.OpError{Op: op.Op, Net: op.Net, Addr: op.Addr, Err: errNoAnswer}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errNoAnswer
	}
	return err
}

// quote shows a key in errors and logs: quoted, and cut at 64 bytes.
func quote(key string) string {
	if len(key) > 64 {
		return strconv.Quote(key[:64]) + "…"
	}
	return strconv.Quote(key)
}

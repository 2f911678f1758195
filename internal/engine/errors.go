package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

var (
	errNoAnswer = errors.New("no answer in time")
	errForced   = errors.New("force-unlocked")
	errTooLate  = errors.New("the reply came when the lease was already over")
	errWaits    = errors.New("WaitAtMost is for Do and Lock: TryLock and TryLockFor say how long they wait")
	errNested   = errors.New("FixedLease and MaxHold are refused on a nested entry: it takes the lease as it is")

	// errWaitOver is the cause of a context that lock made: its end is not an error
	// of the caller's context.
	errWaitOver = errors.New("wait over")
)

// keyError is the error of a call on a key, or the end of a lease of it. Its text is made
// when it is read: TryLock fails often where it leaves work to another.
type keyError struct {
	what, key string
	err       error
}

func (e *keyError) Error() string {
	return "holdfast: " + e.what + " " + quote(e.key) + ": " + e.err.Error()
}

func (e *keyError) Unwrap() error { return e.err }

// of gives an error its key, unless it has one.
func of(what, key string, err error) error {
	if err == nil {
		return nil
	}
	if _, has := err.(*keyError); has {
		return err
	}
	return &keyError{what, key, err}
}

// heldHere is ErrNotAcquired where this locker itself has had the key for so long:
// perhaps the caller has it, and did not pass on the context that is bound to its lease.
type heldHere time.Duration

func (d heldHere) Error() string {
	return "not acquired: held by this locker for " + (time.Duration(d) / time.Millisecond * time.Millisecond).String()
}

func (heldHere) Unwrap() error { return holdfast.ErrNotAcquired }

// errHeldBack is why an acquire was not sent, see undoing.
var errHeldBack = heldBack{}

type heldBack struct{}

func (heldBack) Error() string {
	return "redis does not answer, and too many attempts wait to be undone"
}
func (heldBack) Outcome() scripts.Outcome { return scripts.Unavailable }

// lost is the end of a lease by loss, with its reason.
func lost(why error) error { return fmt.Errorf("%w: %w", holdfast.ErrLost, why) }

// ended joins the error of a context that ended a call to what the call knew.
func ended(ctx context.Context, known error) error { return failed(known, over(ctx)) }

// over is the error of a context that has ended, and its cause; both stay matchable.
func over(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return failed(err, cause)
}

// known turns the error of a call to Redis into that of its caller: what can be known of
// the outcome, joined with the cause; a refusal stays as it is.
func known(err error) error {
	switch scripts.OutcomeOf(err) {
	case scripts.Unavailable:
		return failed(holdfast.ErrUnavailable, err)
	case scripts.Unknown:
		return failed(holdfast.ErrUnknown, err)
	}
	return err
}

// failed is the error of a failed call to Redis: what is known, and the cause.
func failed(known, cause error) error { return fmt.Errorf("%w: %w", known, cause) }

// endedBy is how a wait ends with its context: what is known, joined with the context's
// error, if it is the caller's.
func endedBy(ctx context.Context, known error) error {
	if context.Cause(ctx) == errWaitOver {
		return known
	}
	return ended(ctx, known)
}

// doneBefore is the answer to a context that ended before anything was done.
func doneBefore(ctx context.Context) error {
	if context.Cause(ctx) == errWaitOver {
		return holdfast.ErrNotAcquired
	}
	return over(ctx)
}

// ours hides that a context of the engine's own ended a call to Redis: an error may show
// only the caller's. It also names the server where the error does not: those of the
// network do.
func (c *Calls) ours(err error) error {
	if err == nil {
		return nil
	}
	op := (*net.OpError)(nil)
	network := errors.As(err, &op)
	switch {
	case network && op.Op == "dial" && op.Timeout():
		// It also matches DeadlineExceeded; and surely nothing was sent.
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

// quote shows a key in errors and logs: quoted, and cut at 64 bytes.
func quote(key string) string {
	if len(key) > 64 {
		return strconv.Quote(key[:64]) + "…"
	}
	return strconv.Quote(key)
}

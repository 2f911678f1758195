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
	errTooLate  = errors.New("the reply came after the lease was over")
	errWaits    = errors.New("WaitAtMost is for Do and Lock: TryLock and TryLockFor bound the wait themselves")
	errNested   = errors.New("FixedLease and MaxHold are refused on a nested entry: it takes the lease as it is")

	// errWaitOver is the cause of a context made by lock. The end of that context is
	// not an error of the caller's.
	errWaitOver = errors.New("wait over")
)

// keyError is the error of a call on a key, or the end of a lease on it. It makes its text
// on demand, as a failing TryLock is an everyday event.
type keyError struct {
	what, key string
	err       error
}

func (e *keyError) Error() string {
	return "holdfast: " + e.what + " " + Quote(e.key) + ": " + e.err.Error()
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

// heldHere is ErrNotAcquired with the time for which this locker itself has held the key:
// perhaps the caller is the holder, and did not pass on the context bound to its lease.
type heldHere time.Duration

func (d heldHere) Error() string {
	return "not acquired: held by this locker for " + (time.Duration(d) / time.Millisecond * time.Millisecond).String()
}

func (heldHere) Unwrap() error { return holdfast.ErrNotAcquired }

// errHeldBack says why an acquire was not sent, see undoing.
var errHeldBack = heldBack{}

type heldBack struct{}

func (heldBack) Error() string {
	return "redis does not answer, and too many attempts wait to be undone"
}
func (heldBack) Outcome() scripts.Outcome { return scripts.Unavailable }

// lost is ErrLost with its reason.
func lost(why error) error { return fmt.Errorf("%w: %w", holdfast.ErrLost, why) }

// ended joins what is known of a call with the error of the context that ended it.
func ended(ctx context.Context, known error) error { return failed(known, over(ctx)) }

// over is the error of a context that has ended, with its cause; both stay matchable.
func over(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return failed(err, cause)
}

// known joins the error of a call to Redis with what is known of its outcome. A refusal
// stays as it is.
func known(err error) error {
	switch scripts.OutcomeOf(err) {
	case scripts.Unavailable:
		return failed(holdfast.ErrUnavailable, err)
	case scripts.Unknown:
		return failed(holdfast.ErrUnknown, err)
	}
	return err
}

// failed joins what is known of a call that failed with the cause.
func failed(known, cause error) error { return fmt.Errorf("%w: %w", known, cause) }

// endedBy is ended, without the error of a context that lock made.
func endedBy(ctx context.Context, known error) error {
	if context.Cause(ctx) == errWaitOver {
		return known
	}
	return ended(ctx, known)
}

// doneBefore is the error of a context that ended before the call began.
func doneBefore(ctx context.Context) error {
	if context.Cause(ctx) == errWaitOver {
		return holdfast.ErrNotAcquired
	}
	return over(ctx)
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

// Quote quotes a key for errors and logs, and cuts it at 64 bytes.
func Quote(key string) string {
	if len(key) > 64 {
		return strconv.Quote(key[:64]) + "…"
	}
	return strconv.Quote(key)
}

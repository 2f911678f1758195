// Package errs has the errors of all lockers of this module, with one form of text.
package errs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Errors that callers have no need to match.
var (
	ErrForced = errors.New("force-unlocked")
	ErrWaits  = Invalid("WaitAtMost is for Do and Lock: TryLock and TryLockFor bound the wait themselves")
	ErrNested = Invalid("FixedLease, MaxHold and Label are refused on a nested entry: it takes the lease as it is")

	// ErrWaitOver is the cause of a context that a locker made to bound a wait. The end of
	// that context is not an error of the caller's.
	ErrWaitOver = errors.New("wait over")
)

// Invalid is ErrInvalidArgument with a text of its own, made like that of fmt.Errorf.
func Invalid(format string, args ...any) error { return invalid{fmt.Errorf(format, args...)} }

type invalid struct{ error }

func (invalid) Is(target error) bool { return target == holdfast.ErrInvalidArgument }

func (e invalid) Unwrap() error { return e.error }

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

// Of gives an error its key, unless it has one.
func Of(what, key string, err error) error {
	if err == nil {
		return nil
	}
	if _, has := err.(*keyError); has {
		return err
	}
	return &keyError{what, key, err}
}

// Here is ErrNotAcquired for a key that this locker itself has held for that long: perhaps the caller
// is the holder, and did not pass the context bound to its lease. label is of the call that has the
// key; nil: that of the locker.
func Here(held time.Duration, label *string) error {
	if label != nil {
		return heldAs{heldHere(held), *label}
	}
	return heldHere(held)
}

// heldHere is a number, which costs a refusal in memory less than a struct with a pointer.
type heldHere time.Duration

func (h heldHere) Error() string {
	return "not acquired: held by this locker for " + time.Duration(h).Truncate(time.Millisecond).String()
}

func (heldHere) Unwrap() error { return holdfast.ErrNotAcquired }

type heldAs struct {
	heldHere
	label string
}

func (h heldAs) Error() string { return h.heldHere.Error() + ", as " + Quote(h.label) }

// HeldBy is ErrNotAcquired with the label of the holder; "": another without one.
type HeldBy string

func (l HeldBy) Error() string {
	if l == "" {
		return "not acquired: held by another"
	}
	return "not acquired: held by " + Quote(string(l))
}

func (HeldBy) Unwrap() error { return holdfast.ErrNotAcquired }

// Lost is ErrLost with its reason.
func Lost(why error) error { return fmt.Errorf("%w: %w", holdfast.ErrLost, why) }

// WithContext joins what is known of a call with the error of the context that ended it.
func WithContext(ctx context.Context, known error) error { return With(known, over(ctx)) }

// over is the error of a context that has ended, with its cause; both stay matchable.
func over(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return With(err, cause)
}

// With joins what is known of a call that failed with the cause.
func With(known, cause error) error { return fmt.Errorf("%w: %w", known, cause) }

// WithWait is WithContext for a wait. ErrWaitOver, with which the locker itself ends one, is not shown.
func WithWait(ctx context.Context, known error) error {
	if context.Cause(ctx) == ErrWaitOver {
		return known
	}
	return WithContext(ctx, known)
}

// DoneBefore is the error of a context that ended before the call began.
func DoneBefore(ctx context.Context) error {
	if context.Cause(ctx) == ErrWaitOver {
		return holdfast.ErrNotAcquired
	}
	return over(ctx)
}

// LeaseOver reports whether an error, as of Unlock, says that the lease had ended before, and not only
// that its release has failed.
func LeaseOver(err error) bool {
	return errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrReleased) || errors.Is(err, holdfast.ErrClosed) ||
		errors.Is(err, holdfast.ErrWrongType)
}

// OfDo is the error of a Do: that of its function, joined with those of Unlock which say that a
// lease did not last as long as the function ran.
func OfDo(err error, ends ...error) error {
	for _, end := range ends {
		if LeaseOver(end) {
			err = errors.Join(err, end)
		}
	}
	return err
}

// Quote quotes a key or a label for errors and logs, and cuts it at 64 bytes.
func Quote(key string) string {
	if len(key) > 64 {
		return strconv.Quote(key[:64]) + "…"
	}
	return strconv.Quote(key)
}

package metrics

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Other is the type of an error that has no other, as OpenTelemetry calls it.
const Other = "_OTHER"

// errPermits stands for every [holdfast.PermitsError].
var errPermits = errors.New("wrong permits")

type errorType struct {
	err  error
	name string
}

// An error that matches several has the first.
var (
	failed = []errorType{
		{holdfast.ErrLost, "lost"}, {holdfast.ErrReleased, "released"}, {holdfast.ErrClosed, "closed"},
		{holdfast.ErrWrongType, "wrong_type"}, {holdfast.ErrOldServer, "old_server"}, {holdfast.ErrTooManyWaiters, "too_many_waiters"},
		{holdfast.ErrInvalidArgument, "invalid_argument"}, {holdfast.ErrUpgrade, "upgrade"}, {errPermits, "wrong_permits"},
		{holdfast.ErrNotReplicated, "not_replicated"}, {holdfast.ErrUnavailable, "unavailable"}, {holdfast.ErrUnknown, "unknown"},
		{context.Canceled, "canceled"}, {holdfast.ErrNotAcquired, "not_acquired"}, {context.DeadlineExceeded, "deadline_exceeded"},
	}
	lost = []errorType{
		{watchdog.ErrNotOurs, "not_ours"}, {watchdog.ErrFixedLease, "fixed_lease"}, {watchdog.ErrDeadline, "expired"},
		{watchdog.ErrMaxHold, "max_hold"},
		{errs.ErrForced, "force_unlocked"},
	}
	failures    = names(failed)
	losses      = names(lost)
	unconfirmed = []string{"unavailable", "unknown", Other}
)

func names(types []errorType) (all []string) {
	for _, t := range types {
		all = append(all, t.name)
	}
	return append(all, Other)
}

// ErrorType is one of few names for the error of a call; "" for nil.
func ErrorType(err error) string { return typeOf(err, failed) }

func typeOf(err error, types []errorType) string {
	if err == nil {
		return ""
	}
	if p := (*holdfast.PermitsError)(nil); errors.As(err, &p) {
		err = errors.Join(err, errPermits)
	}
	for _, t := range types {
		if errors.Is(err, t.err) {
			return t.name
		}
	}
	return Other
}

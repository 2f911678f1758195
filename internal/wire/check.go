package wire

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/errs"
)

const maxLease = check.MaxLease

// notSent is an error of a call that ended before anything was sent.
type notSent struct{ error }

func (e notSent) Unwrap() error  { return e.error }
func (notSent) Outcome() Outcome { return Refused }

func refuse(format string, args ...any) error { return notSent{errs.Invalid(format, args...)} }

func checkLease(d time.Duration) error {
	if err := check.Lease(d); err != nil {
		return refuse("lease: %w", err)
	}
	return nil
}

func checkHold(owner string, lease time.Duration) error {
	if owner == "" {
		return refuse("owner is empty")
	}
	return checkLease(lease)
}

func checkLastFence(last int64) error {
	if last < 0 || last > 9_999_999_999_999_999 {
		return refuse("last fence: %d is not from 0 to 9999999999999999", last)
	}
	return nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func millis(d time.Duration) string { return decimal(d.Milliseconds()) }

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

// refuse is for what no script can check. The scripts check all other arguments, and package check what users give.
func refuse(format string, args ...any) error { return notSent{errs.Invalid(format, args...)} }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func millis(d time.Duration) string { return decimal(d.Milliseconds()) }

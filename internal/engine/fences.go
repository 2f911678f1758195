package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
)

// fences are the numbers reserved for a hold; nil without fencing. Guarded by the
// stripe's mutex.
type fences struct {
	first, last int64 // immutable
	current     int64
}

func (f *fences) usedUp() bool { return f != nil && f.current >= f.last }

// used is the last fence used if there are others to give back, otherwise 0.
func (f *fences) used() int64 {
	if f == nil || f.usedUp() {
		return 0
	}
	return f.current
}

// ready waits until the next fence may be used, if there is one. Fences follow the server's
// clock in microseconds and must not run ahead of it, or a lost counter would start again
// below them: at most one per microsecond. The clock may stand still, like that of a
// testing/synctest bubble; so ready gives up after a thousand readings, far more than fit
// into a microsecond. That takes some tens of microseconds, with the key's mutex held. Not to wait at all
// would release a key with empty sections again and again: a sixth of its locks a second were left.
func (f *fences) ready(by *calls.Calls, granted time.Duration) bool {
	if f == nil || f.usedUp() {
		return f == nil
	}
	for range 1000 {
		passed := by.Now() - granted
		if f.current-f.first < (passed - passed/50).Microseconds() {
			return true
		}
	}
	return false
}

func (h *Hold) fences() *fences {
	if h.extras.fences.first == 0 {
		return nil
	}
	return &h.extras.fences
}

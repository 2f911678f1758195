package calls

import (
	"sync/atomic"
	"time"
)

// Average is a moving average over about eight values, such as durations in ns; 0: there were
// none. Safe for concurrent use; a lost value does no harm.
type Average struct{ atomic.Int64 }

// Note takes in a value.
func (a *Average) Note(d time.Duration) {
	old := a.Load()
	if old == 0 {
		old = int64(d)
	}
	a.Store(old + (int64(d)-old)/8)
}

package calls

import (
	"sync/atomic"
	"time"
)

// Average is a moving average over about eight values, such as durations in ns; 0: there were
// none. Safe for concurrent use; a lost value does no harm.
type Average struct{ atomic.Int64 }

// NoteRTT takes in the time of a round trip. One that took far longer than the others, as when a
// server stood still, counts little, and it gives way immediately to one that is far shorter.
func (a *Average) NoteRTT(d time.Duration) {
	switch old := time.Duration(a.Load()); {
	case d < old/8:
		a.Store(int64(d))
	case old > 0:
		a.Note(min(d, 2*old))
	default:
		a.Note(d)
	}
}

// Note takes in a value.
func (a *Average) Note(d time.Duration) {
	old := a.Load()
	if old == 0 {
		old = int64(d)
	}
	a.Store(old + (int64(d)-old)/8)
}

package calls

import (
	"cmp"
	"sync/atomic"
	"time"
)

// Average is a moving average over about eight values, such as durations in ns; 0: there were
// none. Safe for concurrent use; a lost value does no harm.
type Average struct{ atomic.Int64 }

// NoteRTT takes in the time of a round trip. One that took far longer than the others, as when a
// server stood still, counts little, and it gives way immediately to one that is far shorter.
func (a *Average) NoteRTT(d time.Duration) {
	switch v, old := int64(d), a.Load(); {
	case v < old/8:
		a.Store(v)
	case old > 0:
		a.Note(min(v, 2*old))
	default:
		a.Note(v)
	}
}

// Note takes in a value.
func (a *Average) Note(v int64) {
	old := cmp.Or(a.Load(), v)
	a.Store(old + (v-old)/8)
}

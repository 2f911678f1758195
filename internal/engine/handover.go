package engine

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/seed"
)

// Local hand-over: when a section ends while others of the same process wait, the next
// waiter gets a section in the same hold, without a call to Redis. Trusted deadline,
// renewal and loss stay those of the hold. Hand-over goes on for at most one tenure; then
// the key is released, for all processes.

// handOver gives the hold, whose section has just ended, to the next waiter. It refuses
// when the tenure is over; when the hold or the waiter has other than plain terms; when a
// nested call of unknown outcome may still arrive, which would count for the next section;
// and when the fences reserved for the hold are used up or the clock does not let the next
// one be used. The key is locked. The caller
// unlocks it, which notifies the listeners of the old section, and then sends the lease
// to w.
func (h *Engine) handOver(k *keyState, d *hold) (w *waiter, lease *holdfast.Lease) {
	if d.tainted || !d.plain && !seed.HandOverAny || h.calls.Now()-d.granted >= h.LocalHandover || !d.fences().ready(h.calls, d.granted) {
		return nil, nil
	}
	if w = h.waits.next(k, d); w == nil {
		return nil, nil
	}
	if f := d.fences(); f != nil && !seed.FenceTwice {
		f.present++
	}
	return w, d.newSection()
}

// numbers is how many fences an attempt for a waiter reserves: one for each microsecond
// of a tenure.
func (h *Engine) numbers(t Terms) int64 {
	if !t.plain() {
		return 1
	}
	return min(max(1, h.LocalHandover.Microseconds()), 1_000_000)
}

// fences are the numbers reserved for a hold; nil without fencing. Guarded by the
// shard's lock.
type fences struct {
	first, last int64 // immutable
	present     int64
}

func (f *fences) usedUp() bool { return f != nil && f.present >= f.last }

// used is the last fence used if there are others to give back, else 0.
func (f *fences) used() int64 {
	if f == nil || f.usedUp() {
		return 0
	}
	return f.present
}

// ready waits until the next fence may be used, if there is one. Fences follow the server's
// clock in microseconds and must not run ahead of it, or a counter that is lost would start
// again below them: at most one per microsecond. The clock may stand still, as that of a
// bubble of testing/synctest does; so ready gives up after far more looks than fit into a
// microsecond.
func (f *fences) ready(c *calls.Calls, granted time.Duration) bool {
	if f == nil || f.usedUp() {
		return f == nil
	}
	for range 1000 {
		passed := c.Now() - granted
		if f.present-f.first < (passed - passed/50).Microseconds() {
			return true
		}
	}
	return false
}

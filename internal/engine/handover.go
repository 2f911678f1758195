package engine

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// Local hand-over: when a section ends and others of the same process wait, the next of
// them gets a section in the same hold, without a call to Redis. Trusted deadline,
// renewal and loss stay those of the hold. It goes on for at most one tenure; then the
// key is released for everybody.

// handOver gives the hold, whose section has just ended, to the next waiter. It refuses
// when the tenure is over; when the hold or the waiter asked for more than a plain
// renewed lease (like to like); when a nested call of unknown outcome may still arrive,
// which would count for the next section; and when the fences reserved for the hold are
// used up. The key is locked. The caller sends the lease to w after unlocking it, when
// the listeners of the old section have been told.
func (h *Engine) handOver(k *keyState, d *hold) (w *waiter, lease *holdfast.Lease) {
	if d.tainted || !d.plain || h.calls.now()-d.granted >= h.Handover || d.fences().usedUp() {
		return nil, nil
	}
	if w = h.waits.next(k, d); w == nil {
		return nil, nil
	}
	d.fences().next(h.calls, d.granted)
	return w, d.newSection()
}

// numbers is how many fences an attempt reserves when others wait behind: one for each
// microsecond of a tenure.
func (h *Engine) numbers(t Terms) int64 {
	if !t.plain() {
		return 1
	}
	return min(max(1, h.Handover.Microseconds()), 1_000_000)
}

// fences are the numbers reserved for a hold; nil without fencing. Guarded by the
// shard's lock.
type fences struct {
	first, last int64 // immutable
	present     int64
}

func (f *fences) usedUp() bool { return f != nil && f.present >= f.last }

// used is the last number used, if numbers are left to be given back; else 0.
func (f *fences) used() int64 {
	if f == nil || f.usedUp() {
		return 0
	}
	return f.present
}

// next moves on to the next number, if they are not used up. Numbers follow the server's
// clock in microseconds and must not run ahead of it: else a counter that is lost would
// start again below them. So next waits until it may use one more: they come at one per
// microsecond at most.
func (f *fences) next(c *Calls, granted time.Duration) {
	if f == nil || f.usedUp() {
		return
	}
	for {
		passed := c.now() - granted
		if f.present-f.first < (passed - passed/50).Microseconds() {
			f.present++
			return
		}
	}
}

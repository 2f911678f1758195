package engine

import "time"

// Local hand-over: when a lease ends and others of the same process wait, the
// first of them gets a lease in the same hold, without a call to Redis. Trusted
// deadline, renewal and loss stay those of the hold. It goes on for at most one
// tenure; then the key is released for everybody.

// handOver gives the hold, whose lease has just ended, to the first waiter. It
// refuses when the tenure is over; when the hold or the waiter asked for more
// than a plain renewed lease (like to like); when a nested call of unknown
// outcome may still arrive, which would count for the next lease; and when the
// fences reserved for the hold are used up. Under mu.
//
// The caller sends the grant to w once it has told the end of the old lease.
func (h *Engine) handOver(s *shard, q *queue, d *hold) (w *waiter, g grant) {
	if h.fair != nil {
		w = q.line().nextMember(d.run())
	} else {
		w = q.first
	}
	if w == nil || d.tainted || !d.plain || !w.terms.plain() || h.now()-d.granted >= h.Handover {
		return nil, g
	}
	if d.fences() != nil && !d.fences().next(h, d.granted) {
		return nil, g
	}
	if h.fair != nil {
		q.line().serve(d.run(), w)
	}
	q.remove(w)
	if q.first == nil {
		h.settle(s, q)
	}
	return w, grant{entry: d.newLease()}
}

// numbers is how many fences an attempt reserves when others wait behind: one
// for each microsecond of a tenure.
func (h *Engine) numbers(t Terms) int64 {
	if !t.plain() {
		return 1
	}
	return min(max(1, h.Handover.Microseconds()), 1_000_000)
}

// fences are the numbers reserved for a hold. Guarded by the shard's mu.
type fences struct {
	first, last int64 // immutable
	present     int64
}

// used is the last number used, if numbers are left to be given back; else 0.
func (f *fences) used() int64 {
	if f == nil || f.present >= f.last {
		return 0
	}
	return f.present
}

// next moves on to the next number. Numbers follow the server's clock in
// microseconds and must not run ahead of it: else a counter that is lost would
// start again below them. Hence at most one number per microsecond, which is
// waited for.
func (f *fences) next(h *Engine, granted time.Duration) bool {
	if f.present >= f.last {
		return false
	}
	for {
		passed := h.now() - granted
		if f.present-f.first < (passed - passed/50).Microseconds() {
			f.present++
			return true
		}
	}
}

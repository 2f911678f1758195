package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Local handover: when a section ends while others of the same process wait, the next
// waiter gets a section in the same hold, without a call to Redis. Trusted deadline,
// renewal and loss stay those of the hold. Handover goes on for at most one tenure; then
// the key is released, for all processes.

// handover gives the hold, whose section has just ended, to the next waiter. It refuses:
//   - where holds are shared: readers that wait do so for a writer;
//   - when the tenure is over;
//   - when the hold or the waiter has other than default terms;
//   - when a nested call of unknown outcome may still arrive, which would count for the next section, or a
//     reader is beside it;
//   - when the fences reserved for the hold are used up, or the clock does not let the next one be used.
//
// The key's mutex is held. The caller unlocks it, so that the listeners of the old section are notified, before it sends
// the new lease to w. now is the time, by Calls.Now, that the caller has read.
func (e *Engine) handover(k *Key, h *Hold, now time.Duration) (w *Waiter, s *section) {
	if !e.mayHandOver(h, now) {
		return nil, nil
	}
	if w = e.discipline.Next(k, h); w == nil { // also if the first waiter has other than default terms
		return nil, nil
	}
	if f := h.fences(); f != nil {
		f.current++
	}
	return w, h.newSection()
}

// mayHandOver reports whether the hold may serve another section after the one that has just ended, at now.
func (e *Engine) mayHandOver(h *Hold, now time.Duration) bool {
	if e.Holds == SharedHolds || now-h.granted >= e.LocalHandover || h.pinned || !h.isDefault {
		return false
	}
	return h.fences().ready(e.Calls, h.granted)
}

// Fences says how so many fences are reserved for a hold; none without fencing.
func (c *Config) Fences(n int64) (f wire.Fencing) {
	if c.Fencing {
		f = wire.Fencing{Reserve: n, Expiry: *c.FenceExpiry}
	}
	return f
}

// FencesToReserve is how many fences an attempt for a waiter reserves. Sections that share a hold share
// its number.
func (e *Engine) FencesToReserve(t Terms) int64 {
	if !t.Default() || e.Holds == SharedHolds {
		return 1
	}
	return e.TenureFences()
}

// TenureFences is how many fences a tenure may need: one for each microsecond. With fewer, it ends earlier.
func (c *Config) TenureFences() int64 { return min(max(1, c.LocalHandover.Microseconds()), 1_000_000) }

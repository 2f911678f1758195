package watchdog

import (
	"math/rand/v2"
	"slices"
	"time"
)

// call is one call of Renew.
type call[H Watched] struct {
	number uint64   // immutable; Lease.call of the holds that wait for it
	start  int64    // immutable: what its answers prove counts from here
	limit  int64    // immutable: when the holds stop waiting for it
	holds  []H      // immutable
	answer []Answer // owned by Renew until it returns
	late   bool     // guarded by mu: the holds have stopped waiting for it
}

// returned takes in what a call has found out, and frees its place.
func (w *Watchdog[H]) returned(c *call[H]) {
	var over []ending[H]
	w.mu.Lock()
	i := slices.Index(w.calls, c)
	w.calls = slices.Delete(w.calls, i, i+1)
	if w.ctx.Err() == nil {
		now := w.now()
		for i, h := range c.holds {
			if !w.ends.has(h) {
				continue
			}
			switch c.answer[i] {
			case NotOurs:
				over = append(over, w.finish(h, ErrNotOurs))
			case Renewed:
				w.renewed(h, c, now)
			}
		}
		w.settle(c, now)
		w.rouse()
	}
	w.mu.Unlock()
	for _, e := range over {
		w.config.Ended(e.h, e.why)
	}
}

// renewed moves the deadline and the next attempt of h. A lease that is over stays over: the scheduler will tell.
// mu is held.
func (w *Watchdog[H]) renewed(h H, c *call[H], now int64) {
	l, lease := h.watched(), w.config.Lease
	before := l.until.Load()
	until := max(before, min(l.bound, after(c.start, lease-Margin(lease))))
	if before <= now || !l.extend(before, until) {
		return
	}
	if l.call == c.number || l.call == 0 && until > before {
		l.call, l.tries = 0, 0
		w.due.set(h, after(c.start, lease/3))
	}
}

// maxTries is where the back-off stops to grow.
const maxTries = 3

// settle makes the holds that still wait for c try again: after Lease/60 at first, then Lease/30, then each
// Lease/15, times 0.5 to 1.5, the same for the whole call so that its holds stay together. mu is held.
func (w *Watchdog[H]) settle(c *call[H], now int64) {
	jitter := 0.5 + rand.Float64()
	for _, h := range c.holds {
		l := h.watched()
		if l.call != c.number {
			continue
		}
		l.call = 0
		if w.ends.has(h) {
			l.tries = min(l.tries+1, maxTries)
			pause := w.config.Lease / 60 << (l.tries - 1)
			w.due.set(h, after(now, time.Duration(jitter*float64(pause))))
		}
	}
}

package watchdog

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/seed"
)

type call[H Watched] struct {
	number uint64   // immutable; Lease.call of the holds that wait for it
	start  int64    // immutable: what its answers prove counts from here
	limit  int64    // immutable: when the holds stop waiting for it
	holds  []H      // not changed until Renew has returned
	answer []Answer // owned by Renew until it returns
	late   bool     // guarded by mu: the holds have stopped waiting for it
}

// take makes a call of holds that are due; nil if there are none, or if Parallel does not allow it. As soon as one is
// due, all that are due within Lease/30 are taken, in this call and those that follow it, except those that wait
// before they try again: to wake up seldom is what makes many leases cheap, for the server too. Before w.probe, holds
// are not tried again. mu is held.
func (w *Watchdog[H]) take(now int64) *call[H] {
	if len(w.calls) >= w.config.Parallel {
		return nil
	}
	if w.due.first() <= now {
		w.soon = after(now, w.config.Lease/30)
	}
	var holds, early []H
	for len(holds) < w.config.Batch {
		at := w.due.first()
		if at > w.soon || at > now && w.due.head().watched().tries > 0 {
			w.soon = 0
			break
		}
		h := w.due.head()
		if holds == nil {
			holds = make([]H, 0, min(w.config.Batch, w.due.len()))
		}
		w.due.remove(h)
		switch l := h.watched(); {
		case l.tries > 0 && now < w.probe:
			early = append(early, h)
		case l.until.Load() > now:
			l.call = w.called + 1
			holds = append(holds, h)
		}
	}
	if len(early) > 0 {
		w.due.set(w.probe, early...)
	}
	if len(holds) == 0 {
		return nil
	}
	w.called++
	c := &call[H]{
		number: w.called,
		start:  now,
		limit:  after(now, w.config.Lease/6),
		holds:  holds,
		answer: make([]Answer, len(holds)),
	}
	w.calls = append(w.calls, c)
	return c
}

// run makes c and, one after another, the calls for which its place is free then.
func (w *Watchdog[H]) run(c *call[H]) {
	for c != nil {
		ctx, cancel := context.WithDeadline(w.ctx, w.epoch.Add(time.Duration(c.limit)))
		w.config.Renew(ctx, c.holds, c.answer)
		cancel()
		c = w.returned(c)
	}
}

// returned takes in what a call has found out, and returns the call that gets its place, if there is one.
func (w *Watchdog[H]) returned(c *call[H]) (next *call[H]) {
	var over []ending[H]
	w.mu.Lock()
	i := slices.Index(w.calls, c)
	w.calls = slices.Delete(w.calls, i, i+1)
	if w.ctx.Err() == nil {
		now := w.now()
		if seed.TrustFromReply {
			c.start = now
		}
		if slices.ContainsFunc(c.answer, func(a Answer) bool { return a != Unknown }) {
			w.failed, w.probe = 0, 0
		}
		n := 0 // the first of c.holds are due again, all at once
		for i, h := range c.holds {
			if !w.ends.has(h) {
				continue
			}
			switch c.answer[i] {
			case NotOurs:
				over = append(over, w.finish(h, ErrNotOurs))
			case Renewed:
				if w.renewed(h, c, now) {
					c.holds[n], c.holds[i] = h, c.holds[n]
					n++
				}
			}
		}
		if n > 0 {
			w.due.set(after(c.start, w.config.Lease/3), c.holds[:n]...)
		}
		w.settle(c, now)
		next = w.take(now)
		w.rouse()
	}
	w.mu.Unlock()
	for _, e := range over {
		w.config.Ended(e.h, e.why)
	}
	return next
}

// renewed moves the deadline of h, and reports whether it is to be renewed again in due course. A lease that is over
// stays over: the scheduler will tell. mu is held.
func (w *Watchdog[H]) renewed(h H, c *call[H], now int64) bool {
	l, lease := h.watched(), w.config.Lease
	before := l.until.Load()
	until := max(before, min(l.bound, after(c.start, lease-Margin(lease))))
	if before <= now || !l.extend(before, until) {
		return false
	}
	if l.call != c.number && (l.call != 0 || until == before) {
		return false
	}
	l.call, l.tries = 0, 0
	return true
}

// maxTries is where the back-off stops to grow.
const maxTries = 3

// longestPause is the longest time between two tries: a server that is back less than that before a deadline may be too late.
const longestPause = time.Second

// settle makes the holds that still wait for c try again: after Lease/60 at first, then Lease/30, then each
// Lease/15, times 0.5 to 1.5, the same for the whole call so that its holds stay together; but after longestPause at
// most. After Parallel failures in a row, others that try again wait until this call's holds do: else the tries of many
// batches would be a storm. mu is held.
func (w *Watchdog[H]) settle(c *call[H], now int64) {
	jitter, probe := 0.5+rand.Float64(), int64(0)
	for _, h := range c.holds {
		l := h.watched()
		if l.call != c.number {
			continue
		}
		l.call = 0
		if w.ends.has(h) {
			l.tries = min(l.tries+1, maxTries)
			pause := min(w.config.Lease/60<<(l.tries-1), longestPause*2/3)
			probe = after(now, time.Duration(jitter*float64(pause)))
			w.due.set(probe, h)
		}
	}
	if probe == 0 {
		return
	}
	if w.failed++; w.failed >= w.config.Parallel && now >= w.probe {
		w.probe = probe
	}
}

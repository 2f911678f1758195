package watchdog

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

type call[H Watched] struct {
	number uint64   // immutable; Lease.call of the leases that wait for it
	start  int64    // immutable: what its answers prove counts from here
	limit  int64    // guarded by mu: when the leases stop waiting for it; forever: they have
	leases []H      // not changed until Renew has returned
	answer []Answer // owned by Renew until it returns
}

// waitsForCall is Lease.call of a lease that is due and waits for a call.
const waitsForCall = math.MaxUint64

// nextCall makes a call of leases that are due; nil if there are none, or if as many as may be are under way. Before w.retryAt, leases
// are not tried again. mu is held.
func (w *Watchdog[H]) nextCall(now int64) *call[H] {
	if len(w.calls) >= w.config.parallel {
		return nil
	}
	leases, looked := make([]H, 0, min(w.config.batch, len(w.due))), 0
	for ; looked < len(w.due) && len(leases) < w.config.batch; looked++ {
		h := w.due[looked]
		switch l := h.watched(); {
		case l.until.Load() <= now: // it has ended meanwhile
		case l.tries > 0 && now < w.retryAt:
			l.call = 0
			w.queue.set(w.retryAt, h)
		default:
			l.call = w.called + 1
			leases = append(leases, h)
		}
	}
	w.due = slices.Delete(w.due, 0, looked)
	if len(leases) == 0 {
		return nil
	}
	w.called++
	c := &call[H]{
		number: w.called,
		start:  now,
		limit:  after(now, w.config.Lease/6),
		leases: leases,
		answer: make([]Answer, len(leases)),
	}
	w.calls = append(w.calls, c)
	return c
}

// work makes c and, one after another, the calls that may begin as it has returned.
func (w *Watchdog[H]) work(c *call[H]) {
	for c != nil {
		ctx, cancel := context.WithDeadline(w.ctx, w.origin.Add(time.Duration(after(c.start, w.config.Lease/6))))
		w.config.Renew(ctx, c.leases, c.answer)
		cancel()
		c = w.returned(c)
	}
}

// returned takes in what a call has found out, and returns the call that may begin instead, if there is one.
func (w *Watchdog[H]) returned(c *call[H]) (next *call[H]) {
	var over []ending[H]
	w.mu.Lock()
	i := slices.Index(w.calls, c)
	w.calls = slices.Delete(w.calls, i, i+1)
	if w.ctx.Err() == nil {
		now := w.now()
		if slices.ContainsFunc(c.answer, func(a Answer) bool { return a != Unanswered }) {
			w.failed, w.retryAt = 0, 0
		}
		for i, h := range c.leases {
			if !w.queue.has(h) {
				continue
			}
			switch c.answer[i] {
			case NotOurs:
				over = append(over, w.endLease(h, ErrNotOurs))
			case Renewed:
				w.renewed(h, c, now)
			}
		}
		w.retry(c, now)
		next = w.nextCall(now)
		w.rouse()
	}
	w.mu.Unlock()
	for _, e := range over {
		w.config.Ended(e.h, e.why)
	}
	return next
}

// renewed moves the deadline of h and, unless a later call is to renew it, its next attempt. A lease that has ended
// stays ended: the scheduler will report it. mu is held.
func (w *Watchdog[H]) renewed(h H, c *call[H], now int64) {
	l, lease := h.watched(), w.config.Lease
	before := l.until.Load()
	until := max(before, min(l.bound, after(c.start, lease-Margin(lease))))
	if before <= now || !l.extend(before, until) {
		return
	}
	if l.call == c.number || l.call == 0 && until > before {
		l.call, l.tries = 0, 0
		w.queue.set(after(c.start, w.config.Lease/3), h)
	}
}

// maxTries is where the back-off stops growing.
const maxTries = 3

// longestPause is the longest time between two tries: a server that is back less than that before a deadline may be too late.
const longestPause = time.Second

// retry makes the leases that still wait for c try again. They pause for Lease/60 at first, then for Lease/30, then
// always for Lease/15, but for two thirds of longestPause at most. A random factor from 0.5 to 1.5 is the same for the
// whole call, so that its leases stay together. After as many failures in a row as calls may be under way, others that
// try again wait until this call's leases do: otherwise the tries of many batches would be a storm. mu is held.
func (w *Watchdog[H]) retry(c *call[H], now int64) {
	jitter, at := 0.5+rand.Float64(), int64(0)
	for _, h := range c.leases {
		l := h.watched()
		if l.call != c.number {
			continue
		}
		l.call = 0
		if w.queue.has(h) {
			l.tries = min(l.tries+1, maxTries)
			pause := min(w.config.Lease/60<<(l.tries-1), longestPause*2/3)
			at = after(now, time.Duration(jitter*float64(pause)))
			w.queue.set(at, h)
		}
	}
	if at == 0 {
		return
	}
	if w.failed++; w.failed >= w.config.parallel && now >= w.retryAt {
		w.retryAt = at
	}
}

package watchdog

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/loop"
)

// schedule is the goroutine that ends and renews leases when their time has come.
func (w *Watchdog[H]) schedule() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-w.wake:
		case <-w.ctx.Done():
			return
		}
		w.mu.Lock()
		now := w.now()
		over := w.look(now)
		w.giveUp(now)
		for c := w.nextCall(now); c != nil; c = w.nextCall(now) {
			w.tasks.Go(func() { w.work(c) })
		}
		w.alarm = w.nextLook()
		timer.Reset(time.Duration(w.alarm - now))
		w.mu.Unlock()
		for _, e := range over {
			w.config.Ended(e.h, e.why)
		}
	}
}

// nextLook returns the earliest instant at which there is something to do. mu is held.
func (w *Watchdog[H]) nextLook() int64 {
	at := w.queue.first()
	if at <= w.soon { // there was too much to look at
		return 0
	}
	for _, c := range w.calls {
		at = min(at, c.limit)
	}
	return at
}

// rouse wakes the scheduler if there is something to do before it would look by itself. mu is held.
func (w *Watchdog[H]) rouse() {
	at := w.nextLook()
	if at >= w.alarm {
		return
	}
	w.alarm = at
	loop.Poke(w.wake)
}

// ending is a lease that has ended and whose end is still to be reported, without mu.
type ending[H Watched] struct {
	h   H
	why error
}

// look ends leases whose trusted deadline has passed, and makes those that are due wait for a call. As soon as one is due,
// all that are due within Lease/30 are, except those that wait before they try again: rare wake-ups make many leases
// cheap, for the server too. It looks at a bounded number of leases, as mu is held.
func (w *Watchdog[H]) look(now int64) (over []ending[H]) {
	for range w.config.batch * w.config.parallel {
		at := w.queue.first()
		if at > max(now, w.soon) {
			w.soon = 0
			return over
		}
		h := w.queue.items[0].h
		l := h.watched()
		due := l.call == 0 // otherwise at is only the end of its lease
		switch until := l.until.Load(); {
		case until <= now:
			over = append(over, w.endLease(h, l.Reason()))
		case at == until || at > now && due && l.tries > 0: // not yet
			w.soon = 0
			return over
		case due:
			if at <= now {
				w.soon = after(now, w.config.Lease/30)
			}
			l.call = waitsForCall
			w.due = append(w.due, h)
			fallthrough
		default: // the end has moved
			w.queue.set(until, h)
		}
	}
	return over
}

// endLease ends h for the given reason. mu is held.
func (w *Watchdog[H]) endLease(h H, why error) ending[H] {
	w.queue.remove(h)
	h.watched().end()
	return ending[H]{h, why}
}

// giveUp stops waiting for calls that are past their time limit. mu is held.
func (w *Watchdog[H]) giveUp(now int64) {
	for _, c := range w.calls {
		if c.limit <= now {
			c.limit = forever
			w.retry(c, now)
		}
	}
}

package watchdog

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/seed"
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
		over := w.expire(now)
		w.giveUp(now)
		for c := w.take(now); c != nil; c = w.take(now) {
			w.tasks.Go(func() { w.run(c) })
		}
		w.alarm = w.next()
		timer.Reset(time.Duration(w.alarm - now))
		w.mu.Unlock()
		if seed.LateDone && len(over) > 0 {
			time.Sleep(50 * time.Millisecond)
		}
		for _, e := range over {
			w.config.Ended(e.h, e.why)
		}
	}
}

// next returns the earliest instant at which there is something to do. mu is held.
func (w *Watchdog[H]) next() int64 {
	at := w.ends.first()
	if len(w.calls) < w.config.Parallel {
		at = min(at, w.due.first())
	}
	for _, c := range w.calls {
		if !c.late {
			return min(at, c.limit)
		}
	}
	return at
}

// rouse wakes the scheduler if there is something to do before it would look by itself. mu is held.
func (w *Watchdog[H]) rouse() {
	at := w.next()
	if at >= w.alarm {
		return
	}
	w.alarm = at
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// ending is a hold that has ended and whose end is still to be told, without mu.
type ending[H Watched] struct {
	h   H
	why error
}

// expire ends holds whose trusted deadline has passed, and moves those that were renewed to their new places, some
// of them a little early, so as not to wake up for each: so many at most, that mu is not held for long. mu is held.
func (w *Watchdog[H]) expire(now int64) (over []ending[H]) {
	soon := after(now, w.config.Lease/30)
	for range w.config.Batch * w.config.Parallel {
		at := w.ends.first()
		if at > soon || at == forever {
			break
		}
		h := w.ends.head()
		l := h.watched()
		switch until := l.until.Load(); {
		case until > at:
			w.ends.set(until, h)
		case at > now:
			return over
		default:
			over = append(over, w.finish(h, l.Over()))
		}
	}
	return over
}

// finish ends h for the given reason. mu is held.
func (w *Watchdog[H]) finish(h H, why error) ending[H] {
	w.ends.remove(h)
	w.due.remove(h)
	h.watched().end()
	return ending[H]{h, why}
}

// giveUp stops waiting for calls that are past their time limit. mu is held.
func (w *Watchdog[H]) giveUp(now int64) {
	for _, c := range w.calls {
		if !c.late && c.limit <= now {
			c.late = true
			w.settle(c, now)
		}
	}
}

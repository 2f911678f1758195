package watchdog

import (
	"context"
	"time"
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
		w.renew(now)
		w.alarm = w.next()
		timer.Reset(time.Duration(w.alarm - now))
		w.mu.Unlock()
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

// expire ends holds whose trusted deadline has passed, and moves those that were renewed to their new places: at most
// a batch, so that mu is not held for long. mu is held.
func (w *Watchdog[H]) expire(now int64) (over []ending[H]) {
	for n := 0; w.ends.first() <= now && n < w.config.Batch; n++ {
		h := w.ends.items[0].h
		l := h.watched()
		if until := l.until.Load(); until > now {
			w.ends.set(h, until)
			continue
		}
		over = append(over, w.finish(h, l.Over()))
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

// renew starts calls for the holds that are due, as far as Parallel allows. A batch is filled up with holds that are
// due soon, except those that wait before they try again. mu is held.
func (w *Watchdog[H]) renew(now int64) {
	soon := after(now, w.config.Lease/30)
	for len(w.calls) < w.config.Parallel && w.due.first() <= now {
		var holds []H
		for len(holds) < w.config.Batch {
			at := w.due.first()
			if at > soon {
				break
			}
			h := w.due.items[0].h
			if at > now && h.watched().tries > 0 {
				break
			}
			w.due.remove(h)
			if h.watched().Alive() {
				holds = append(holds, h)
			}
		}
		if len(holds) > 0 {
			w.start(holds, now)
		}
	}
}

// start starts one call. mu is held.
func (w *Watchdog[H]) start(holds []H, now int64) {
	w.called++
	c := &call[H]{
		number: w.called,
		start:  now,
		limit:  after(now, w.config.Lease/6),
		holds:  holds,
		answer: make([]Answer, len(holds)),
	}
	for _, h := range holds {
		h.watched().call = c.number
	}
	w.calls = append(w.calls, c)
	w.tasks.Go(func() {
		ctx, cancel := context.WithDeadline(w.ctx, w.epoch.Add(time.Duration(c.limit)))
		defer cancel()
		w.config.Renew(ctx, c.holds, c.answer)
		w.returned(c)
	})
}

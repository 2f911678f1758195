package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Unlock ends the entry; the last one of a lease ends the lease. It works on a
// ctx that is over: ctx bounds only how long a failed release is waited for.
func (e *Entry) Unlock(ctx context.Context) error {
	return of("unlock", e.Key(), e.end(ctx))
}

func (e *Entry) end(ctx context.Context) error {
	l := e.lease
	d := l.hold
	h, s := d.engine, d.shard()
	s.mu.Lock()
	if err := e.unlock(); err != nil {
		s.mu.Unlock()
		return err
	}
	if !d.Alive() {
		why := d.Over()
		if why == watchdog.ErrMaxHold { // the watchdog, which would have it undone, is late
			h.undo(d)
		}
		s.mu.Unlock()
		h.lose(d, why)
		return lost(why)
	}
	// Both give mu back.
	if l.entries > 1 {
		return h.unlockNested(ctx, s, e)
	}
	return h.unlockLast(ctx, s, l)
}

// unlock says why there is nothing to unlock, under mu.
func (e *Entry) unlock() error {
	switch {
	case e.unlocked:
		return holdfast.ErrReleased
	default:
		e.unlocked = true
		return e.lease.over
	}
}

// unlockLast ends the lease: by handing its hold over, or by releasing the key.
func (h *Engine) unlockLast(ctx context.Context, s *shard, l *lease) error {
	d := l.hold
	q := d.queue
	told := l.end(holdfast.ErrReleased)
	d.tainted = d.tainted || l.nesting.busy()
	if w, g := h.handOver(s, q, d); w != nil {
		s.mu.Unlock()
		told.fire(holdfast.ErrReleased)
		w.ready <- g
		return nil
	}
	h.watchdog.Forget(d)
	q.hold, q.busy = nil, true
	q.line().departs()
	q.calls++
	h.work.Add(1) // Close has not passed here: it would have ended the lease
	s.mu.Unlock()
	defer h.work.Done()
	told.fire(holdfast.ErrReleased)
	return h.release(ctx, s, q, d)
}

// release frees the key in Redis and lets the queue go on. What does not succeed
// at the first attempt goes on in the background for a lease, after which Redis
// has freed the key by itself.
func (h *Engine) release(ctx context.Context, s *shard, q *queue, d *hold) error {
	var heard pubsub.State
	if h.fair == nil && q.head != nil {
		heard = q.head.heard()
	}
	r := releasing{engine: h, hold: d, lastFence: d.fences().used()}
	err := r.attempt(h.calls.context())
	s.mu.Lock()
	q.calls--
	if r.said.Ours && q.first != nil && h.Handover > 0 && h.fair == nil {
		h.stepBack(q, r.said.Listeners, heard)
	}
	h.settle(s, q)
	s.mu.Unlock()
	switch scripts.OutcomeOf(err) {
	case scripts.Done:
		return r.result()
	case scripts.Refused:
		return err
	}
	finished := make(chan error, 1)
	h.background(func() {
		err := h.persist(h.until(d), r.attempt)
		if err != nil {
			h.reportLost(d)
		}
		finished <- err
	})
	select {
	case err = <-finished:
		if err == nil {
			return r.result()
		}
		return failed(holdfast.ErrUnknown, err)
	case <-ctx.Done():
		return ended(ctx, failed(holdfast.ErrUnknown, err))
	}
}

// releasing is one release, however many attempts it takes.
type releasing struct {
	engine    *Engine
	hold      *hold
	lastFence int64
	said      scripts.Released // by the last attempt that was answered
	doubt     bool             // an attempt that was not answered may have released
}

func (r *releasing) attempt(ctx context.Context) (err error) {
	h := r.engine
	if h.answering() { // as aside, but without its closure
		r.said, err = h.free(ctx, r.hold, r.lastFence)
	} else {
		r.said, err = aside(ctx, h, func(ctx context.Context) (scripts.Released, error) {
			return h.free(ctx, r.hold, r.lastFence)
		})
	}
	err = h.ours(err)
	h.note(err)
	r.doubt = r.doubt || scripts.OutcomeOf(err) == scripts.Unknown
	return err
}

// result judges an answered release: that nothing was found tells of a loss only
// if no attempt before can have been the one that released.
func (r *releasing) result() error {
	if r.said.Ours || r.doubt {
		return nil
	}
	return lost(watchdog.ErrNotOurs)
}

// stepBack begins the others' turns after a release with local waiters, under mu.
func (h *Engine) stepBack(q *queue, listeners int, heard pubsub.State) {
	p := q.meet()
	others := listeners
	if heard.Live {
		others--
	}
	p.turns.stepBack(others, heard, time.Now(), h.trips.get())
	if heard.Live {
		p.turns.published()
	}
	p.contended = p.contended || others > 0
}

// persist repeats a call that may be repeated until it succeeds, is refused, or
// the time is over; it returns the last error.
func (h *Engine) persist(until time.Time, call func(context.Context) error) error {
	var retry backoff
	for {
		err := h.ours(call(h.calls.context()))
		if outcome := scripts.OutcomeOf(err); outcome == scripts.Done || outcome == scripts.Refused {
			return err
		}
		pause := retry.next(h.Lease)
		if time.Until(until) < pause {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-h.calls.base.Done():
			timer.Stop()
			return err
		}
	}
}

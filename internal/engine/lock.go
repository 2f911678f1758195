package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Do locks key, runs f with a context that is bound to the lease, and unlocks, even when
// f panics or ends its goroutine.
func (h *Engine) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) (err error) {
	if f == nil {
		return errs.Of("lock", key, errs.Invalid("Do: function is nil"))
	}
	lease, err := h.Lock(ctx, key, opts...)
	if err != nil {
		return err
	}
	defer func() {
		err = errs.OfDo(err, lease.Unlock(ctx))
	}()
	return f(lease.Bind(ctx))
}

// Lock waits for key until ctx ends or the time of WaitAtMost is over. A ctx bound to a
// live lease of this engine on key re-enters it.
func (h *Engine) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return h.lock(ctx, key, -1, opts)
}

// TryLock makes one attempt.
func (h *Engine) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return h.lock(ctx, key, 0, opts)
}

// TryLockFor waits at most the given time; 0 makes one attempt.
func (h *Engine) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	if wait < 0 {
		return nil, errs.Of("lock", key, errs.Invalid("TryLockFor: wait of %v is negative", wait))
	}
	return h.lock(ctx, key, wait, opts)
}

// lock waits at most the given time; negative: as the options say, or without limit.
func (h *Engine) lock(ctx context.Context, key string, wait time.Duration, opts []holdfast.LockOption) (lease *holdfast.Lease, err error) {
	began := h.observer.now()
	name, t, o, err := h.terms(ctx, key, opts)
	switch {
	case err != nil || o.WaitAtMost == nil:
	case wait < 0:
		wait = *o.WaitAtMost
	default:
		err = errs.ErrWaits
	}
	if err == nil && wait > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, wait, errs.ErrWaitOver)
		defer cancel()
		ctx = limited
	}
	var k *keyState
	var w *waiter
	if err == nil {
		lease, k, w, err = h.enter(ctx, name, t, wait != 0)
	}
	if w != nil {
		k.watchPlace(w, o.OnPlace)
		lease, err = h.await(ctx, k, w)
	}
	err = errs.Of("lock", key, err)
	h.observer.refused(key, err, began)
	return lease, err
}

// enter makes the first attempt, or adds a waiter and returns it, so that the stack holds
// nothing of enter during the wait.
func (h *Engine) enter(ctx context.Context, name string, t Terms, wait bool) (lease *holdfast.Lease, k *keyState, w *waiter, err error) {
	if ctx.Err() != nil {
		return nil, nil, nil, errs.DoneBefore(ctx)
	}
	if e := h.boundTo(ctx, name); e != nil {
		lease, err = h.reenter(ctx, e, t, wait)
		return lease, nil, nil, err
	}
	s := h.shardOf(name)
	s.Lock()
	k = s.keys[name]
	switch {
	case s.closed:
		err = holdfast.ErrClosed
	case k == nil, !wait && k.idle():
		k = s.begin(name)
		s.Unlock()
		lease, w, err = h.first(ctx, k, t, wait)
		return lease, k, w, err
	case !wait:
		err = h.waits.unmet(k, nil)
	case k.full():
		err = holdfast.ErrQueueFull
	}
	if err != nil {
		s.Unlock()
		return nil, nil, nil, err
	}
	w = h.pool.get(t)
	k.push(w)
	h.waits.join(k, w)
	s.Unlock()
	h.waits.arrive(ctx, k, w)
	return nil, k, w, nil
}

// first is the attempt of a caller that found no other caller here. It runs on the
// caller's own goroutine, which saves an uncontended lock a fifth of its time. If the
// caller has to wait, first returns its waiter.
func (h *Engine) first(ctx context.Context, k *keyState, t Terms, wait bool) (*holdfast.Lease, *waiter, error) {
	defer h.calls.End()
	bounded, done := h.calls.ContextFor(ctx)
	a := h.attempt(bounded, k, t, 1)
	done()

	k.Lock()
	k.calls--
	if lease := h.take(k, a); lease != nil {
		h.observer.acquired(&a.hold.section.first, holdfast.ByCall, a.start)
		h.waits.settle(k)
		k.Unlock()
		if ctx.Err() != nil { // it ended before the reply came: the caller may be gone
			h.giveBack(lease)
			return nil, nil, errs.EndedBy(ctx, holdfast.ErrNotAcquired)
		}
		return lease, nil, nil
	}
	err := h.refusal(ctx, k, a, wait)
	if err != nil {
		h.waits.settle(k)
		k.Unlock()
		h.cleanUp(k.name, a.orphan)
		return nil, nil, err
	}
	w := h.pool.get(t)
	w.since = a.start
	k.pushFront(w)
	h.waits.refused(k, w, a)
	h.waits.settle(k)
	k.Unlock()
	return nil, w, nil
}

// refusal says why the caller of a failed first attempt does not wait; nil: it waits. The
// key is locked.
func (h *Engine) refusal(ctx context.Context, k *keyState, a attempt, wait bool) error {
	switch {
	case ctx.Err() != nil:
		return errs.EndedBy(ctx, a.known())
	case k.closed:
		return holdfast.ErrClosed
	case !wait, !a.passing(), a.err != nil && *h.MaxOutage == 0:
		return a.known()
	case k.full():
		return holdfast.ErrQueueFull
	}
	return nil
}

// await sleeps until the wait ends. It calls Redis only to confirm a grant. Its frame is
// small: the stack of a waiting goroutine costs more than the waiter itself.
func (h *Engine) await(ctx context.Context, k *keyState, w *waiter) (*holdfast.Lease, error) {
	for {
		select {
		case place := <-w.places:
			h.onPlace(ctx, k, w, place)
		case r := <-w.ready:
			h.logLongWait(k, w)
			if r.confirm != nil {
				return r.confirm.confirm(ctx, w)
			}
			h.pool.put(w)
			return r.lease, r.err
		case <-ctx.Done():
			h.logLongWait(k, w)
			return h.withdraw(ctx, k, w)
		}
	}
}

// logLongWait logs a wait that took longer than a lease.
func (h *Engine) logLongWait(k *keyState, w *waiter) {
	if !h.Logger.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	if d := time.Since(w.since); d > h.Lease {
		h.Logger.Debug("holdfast: waited for longer than a lease", "key", errs.Quote(h.keyOf(k.name)), "waited", d)
	}
}

// withdraw removes a waiter whose context has ended. A lease that it got meanwhile goes to
// the next waiter.
func (h *Engine) withdraw(ctx context.Context, k *keyState, w *waiter) (*holdfast.Lease, error) {
	k.Lock()
	if w.waiting {
		err := h.waits.unmet(k, w)
		k.remove(w)
		h.waits.left(k, w)
		k.Unlock()
		h.pool.put(w)
		return nil, errs.EndedBy(ctx, err)
	}
	k.Unlock()
	r := <-w.ready
	h.pool.put(w)
	switch {
	case r.err != nil:
		return nil, r.err
	case r.confirm != nil:
		r.confirm.decline()
	default:
		h.giveBack(r.lease)
	}
	return nil, errs.EndedBy(ctx, holdfast.ErrNotAcquired)
}

// giveBack releases, in the background, a lease whose caller has gone.
func (h *Engine) giveBack(lease *holdfast.Lease) {
	s := h.shardOf(h.Prefix + lease.Key())
	s.Lock()
	defer s.Unlock()
	if !s.closed { // else Close releases it
		h.calls.Background(func() { _ = lease.Unlock(context.Background()) })
	}
}

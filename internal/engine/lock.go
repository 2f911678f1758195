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
	var k *Key
	var w *Waiter
	if err == nil {
		lease, k, w, err = h.enter(ctx, name, t, wait != 0)
	}
	if w != nil {
		h.WatchPlace(k, w, o.OnPlace)
		lease, err = h.await(ctx, k, w)
	}
	err = errs.Of("lock", key, err)
	h.observer.refused(key, err, began)
	return lease, err
}

// enter makes the first attempt, or adds a waiter and returns it, so that the stack holds
// nothing of enter during the wait.
func (h *Engine) enter(ctx context.Context, name string, t Terms, wait bool) (lease *holdfast.Lease, k *Key, w *Waiter, err error) {
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
	case k == nil, !wait && k.Idle():
		k = h.begin(s, name)
		s.Unlock()
		lease, w, err = h.first(ctx, k, t, wait)
		return lease, k, w, err
	case !wait:
		err = h.waits.Unmet(k, nil)
	case k.full():
		err = holdfast.ErrQueueFull
	}
	if err != nil {
		s.Unlock()
		return nil, nil, nil, err
	}
	w = h.pool.get(t)
	k.Push(w)
	arrival := h.waits.Join(k, w)
	s.Unlock()
	if arrival != nil {
		arrival.Arrive(ctx)
	}
	return nil, k, w, nil
}

// first is the attempt of a caller that found no other caller here. It runs on the
// caller's own goroutine, which saves an uncontended lock a fifth of its time. If the
// caller has to wait, first returns its waiter.
func (h *Engine) first(ctx context.Context, k *Key, t Terms, wait bool) (*holdfast.Lease, *Waiter, error) {
	defer h.Calls.End()
	bounded, done := h.Calls.ContextFor(ctx)
	a := h.Attempt(bounded, k, t, 1)
	done()

	k.Lock()
	if lease := h.Take(k, a, a.Start); lease != nil {
		k.End()
		k.Unlock()
		if ctx.Err() != nil { // it ended before the reply came: the caller may be gone
			h.GiveBack(lease)
			return nil, nil, errs.EndedBy(ctx, holdfast.ErrNotAcquired)
		}
		return lease, nil, nil
	}
	err := h.refusal(ctx, k, a, wait)
	if err != nil {
		k.End()
		k.Unlock()
		h.CleanUp(k.Name, a.Orphan)
		return nil, nil, err
	}
	w := h.pool.get(t)
	w.Since = a.Start
	k.pushFront(w)
	h.waits.Refused(k, w, a)
	k.End()
	k.Unlock()
	return nil, w, nil
}

// refusal says why the caller of a failed first attempt does not wait; nil: it waits. The
// key is locked.
func (h *Engine) refusal(ctx context.Context, k *Key, a Attempt, wait bool) error {
	switch {
	case ctx.Err() != nil:
		return errs.EndedBy(ctx, a.Known())
	case k.closed:
		return holdfast.ErrClosed
	case !wait, !a.Passing(), a.Err != nil && *h.MaxOutage == 0:
		return a.Known()
	case k.full():
		return holdfast.ErrQueueFull
	}
	return nil
}

// await sleeps until the wait ends. It calls Redis only to confirm a grant. Its frame is
// small: the stack of a waiting goroutine costs more than the waiter itself.
func (h *Engine) await(ctx context.Context, k *Key, w *Waiter) (*holdfast.Lease, error) {
	for {
		select {
		case place := <-w.places:
			h.onPlace(ctx, k, w, place)
		case r := <-w.ready:
			h.logLongWait(k, w)
			if r.grant != nil {
				lease, waits, err := r.grant.Confirm(ctx, w)
				h.Calls.End()
				if waits {
					continue
				}
				r.lease, r.err = lease, err
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
func (h *Engine) logLongWait(k *Key, w *Waiter) {
	if !h.Logger.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	if d := time.Since(w.Since); d > h.Lease {
		h.Logger.Debug("holdfast: waited for longer than a lease", "key", errs.Quote(h.KeyOf(k.Name)), "waited", d)
	}
}

// withdraw removes a waiter whose context has ended. A lease that it got meanwhile goes to
// the next waiter.
func (h *Engine) withdraw(ctx context.Context, k *Key, w *Waiter) (*holdfast.Lease, error) {
	k.Lock()
	if w.waiting {
		err := h.waits.Unmet(k, w)
		k.Remove(w)
		h.waits.Left(k, w)
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
	case r.grant != nil:
		r.grant.Decline()
		h.Calls.End()
	default:
		h.GiveBack(r.lease)
	}
	return nil, errs.EndedBy(ctx, holdfast.ErrNotAcquired)
}

// GiveBack releases, in the background, a lease whose caller has gone.
func (h *Engine) GiveBack(lease *holdfast.Lease) {
	h.With(h.Prefix+lease.Key(), func(*Key) { // else Close releases it
		h.Calls.Background(func() { _ = lease.Unlock(context.Background()) })
	})
}

// onPlace runs the function of a waiter. If that panics or ends its goroutine, the call is
// over, and gives up its place.
func (h *Engine) onPlace(ctx context.Context, k *Key, w *Waiter, place int) {
	ended := true
	defer func() {
		if ended {
			_, _ = h.withdraw(ctx, k, w)
		}
	}()
	w.onPlace(place)
	ended = false
}

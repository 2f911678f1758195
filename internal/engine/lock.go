package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Do locks key, runs f with a context that is bound to the lease, and unlocks, even when
// f panics or ends its goroutine.
func (e *Engine) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) (err error) {
	if f == nil {
		return errs.Of("lock", key, errs.Invalid("Do: function is nil"))
	}
	lease, err := e.Lock(ctx, key, opts...)
	if err != nil {
		return err
	}
	defer func() {
		err = errs.OfDo(err, lease.Unlock(ctx))
	}()
	return f(lease.Bind(ctx))
}

// Lock waits for key until ctx ends or the time of WaitAtMost has passed. A ctx bound to a live
// lease of this engine on key re-enters it.
func (e *Engine) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return e.lock(ctx, key, -1, opts)
}

// TryLock makes one attempt.
func (e *Engine) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return e.lock(ctx, key, 0, opts)
}

// TryLockFor waits at most the given time; 0 makes one attempt.
func (e *Engine) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	if wait < 0 {
		return nil, errs.Of("lock", key, errs.Invalid("TryLockFor: wait of %v is negative", wait))
	}
	return e.lock(ctx, key, wait, opts)
}

// lock waits at most the given time; negative: as the options say, or without limit.
func (e *Engine) lock(ctx context.Context, key string, wait time.Duration, opts []holdfast.LockOption) (lease *holdfast.Lease, err error) {
	began := e.observer.now()
	var opt holdfast.LockOptions
	name, t, err := e.terms(ctx, key, opts, &opt)
	switch {
	case err != nil || opt.WaitAtMost == nil:
	case wait < 0:
		wait = *opt.WaitAtMost
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
		lease, k, w, err = e.tryOrWait(ctx, name, t, opt.OnPlace, wait != 0)
	}
	if w != nil {
		lease, err = e.await(ctx, k, w)
	}
	if lease != nil && t.Label != nil {
		e.showLabel(ctx, name, lease)
	}
	err = errs.Of("lock", key, err)
	e.observer.failed(key, err, began)
	return lease, err
}

// With Config.ManyHolds, a caller that may wait makes no first attempt while maxAtOnce calls for the
// key are under way: a crowd must not ask for what only a few can get.
const maxAtOnce = 256

// tryOrWait re-enters a lease, shares a hold or makes the first attempt. If the caller must wait, it
// returns a waiter, for await: so the frame of tryOrWait is gone during the wait.
func (e *Engine) tryOrWait(ctx context.Context, name string, t Terms, onPlace func(int), wait bool) (lease *holdfast.Lease, k *Key, w *Waiter, err error) {
	if ctx.Err() != nil {
		return nil, nil, nil, errs.DoneBefore(ctx)
	}
	if lease, err = e.nested(ctx, name, t, wait); lease != nil || err != nil {
		return lease, nil, nil, err
	}
	st := e.stripeOf(name)
	st.Lock()
	k = st.keys[name]
	if lease = k.share(t); lease != nil {
		st.Unlock()
		lease, err = e.handOut(ctx, lease)
		return lease, nil, nil, err
	}
	var ticket Ticket
	switch {
	case st.closed:
		err = holdfast.ErrClosed
	case e.mayAttempt(k, t, wait):
		k = e.beginCall(st, name)
		if e.SharedHolds && t.Default() {
			k.sharedAttempts++
		}
		st.Unlock()
		lease, w, err = e.firstAttempt(ctx, k, t, onPlace, wait)
		return lease, k, w, err
	case !wait:
		err = e.discipline.WaitError(k, nil)
	case k.full():
		err = holdfast.ErrTooManyWaiters
	default:
		w = e.pool.get(t, onPlace, e.Calls.Now())
		k.Push(w)
		ticket = e.discipline.Join(k, w)
	}
	st.Unlock()
	if ticket != nil {
		ticket.Enter(ctx)
	}
	return nil, k, w, err
}

// mayAttempt reports whether a caller makes an attempt of its own. The mutex of the key's stripe is held;
// k may be nil.
func (e *Engine) mayAttempt(k *Key, t Terms, wait bool) bool {
	switch {
	case k == nil, !wait && k.Idle(): // nobody here has it or wants it
		return true
	case e.SharedHolds && !wait: // a reader that does not wait asks in any case
		return true
	case !e.ManyHolds || k.FirstWaiter() != nil: // those that wait here come first
		return false
	}
	return !wait || k.calls < maxAtOnce && !k.hasSharedAttempt(t)
}

// hasSharedAttempt reports whether a first attempt is under way that serves a waiter with these terms
// too, if it succeeds. The key's mutex is held.
func (k *Key) hasSharedAttempt(t Terms) bool { return k.sharedAttempts > 0 && t.Default() }

// firstAttempt makes the first attempt for a key on the caller's goroutine, which saves an uncontended
// lock a fifth of its time. The caller found nobody here; with Config.ManyHolds, nobody who waits. A
// reader that does not wait makes it in any case. If the caller must wait, firstAttempt returns its
// waiter.
func (e *Engine) firstAttempt(ctx context.Context, k *Key, t Terms, onPlace func(int), wait bool) (*holdfast.Lease, *Waiter, error) {
	defer e.Calls.End()
	bounded, done := e.Calls.ContextFor(ctx)
	lease, a := e.shareAgain(bounded, k, t), Attempt{}
	if lease == nil {
		a = e.Try(bounded, k, t, 1)
	}
	done()

	k.Lock()
	if k.hasSharedAttempt(t) {
		k.sharedAttempts--
	}
	if lease == nil {
		lease = e.Adopt(k, a, nil)
	}
	var w *Waiter
	var err error
	if lease == nil {
		if err = e.whyNotWait(ctx, k, a, wait); err == nil {
			w = e.pool.get(t, onPlace, e.Calls.At(a.Start))
			k.pushEarly(w)
			e.discipline.JoinFirst(k, w, a)
		} else {
			e.Undo(a.Orphan)
		}
	}
	k.EndCall()
	k.Unlock()
	if lease != nil {
		lease, err = e.handOut(ctx, lease)
	}
	return lease, w, err
}

// whyNotWait says why the caller of a failed first attempt does not wait; nil: it waits. The
// key's mutex is held.
func (e *Engine) whyNotWait(ctx context.Context, k *Key, a Attempt, wait bool) error {
	switch {
	case ctx.Err() != nil:
		return errs.WithWait(ctx, a.Failure())
	case k.closed:
		return holdfast.ErrClosed
	case !wait, wire.OutcomeOf(a.Err).Final(), a.Err != nil && *e.MaxOutage == 0:
		return a.Failure()
	case k.full():
		return holdfast.ErrTooManyWaiters
	}
	return nil
}

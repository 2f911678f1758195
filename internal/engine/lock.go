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

// request is what a caller asks for. Engine.fill completes it.
type request struct {
	Terms
	name    string        // of the key
	wait    time.Duration // at most; 0: one attempt; negative: without limit
	onPlace func(int)     // nil: nobody asks for the place
}

// lock waits at most the given time; negative: as the options say, or without limit.
func (e *Engine) lock(ctx context.Context, key string, wait time.Duration, opts []holdfast.LockOption) (lease *holdfast.Lease, err error) {
	began := e.observer.now()
	r := request{wait: wait}
	err = e.fill(&r, key, opts)
	if err == nil && r.wait > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, r.wait, errs.ErrWaitOver)
		defer cancel()
		ctx = limited
	}
	var w *Waiter
	if err == nil {
		lease, w, err = e.tryOrWait(ctx, &r)
	}
	if w != nil {
		lease, err = e.await(ctx, w)
	}
	err = errs.Of("lock", key, err)
	e.observer.failed(key, err, began)
	return lease, err
}

// tryOrWait re-enters a lease, shares a hold or makes the first attempt. If the caller must wait, it
// returns a waiter in place of a lease or an error.
func (e *Engine) tryOrWait(ctx context.Context, r *request) (lease *holdfast.Lease, w *Waiter, err error) {
	if ctx.Err() != nil {
		return nil, nil, errs.DoneBefore(ctx)
	}
	e.warned.Do(e.warnOfEviction)
	if lease, err = e.nested(ctx, r); lease != nil || err != nil {
		return lease, nil, err
	}
	st := e.stripeOf(r.name)
	st.Lock()
	k := st.keys[r.name]
	if lease = k.share(r.Terms); lease != nil {
		st.Unlock()
		lease, err = e.unlockIfOver(ctx, lease, nil)
		return lease, nil, err
	}
	var ticket Ticket
	switch {
	case st.closed:
		err = holdfast.ErrClosed
	case e.mayAttempt(k, r):
		k = st.beginCall(r.name)
		if e.shares(r.Terms) {
			k.sharedAttempts++
		}
		st.Unlock()
		return e.firstAttempt(ctx, k, r)
	case r.wait == 0:
		err = e.discipline.WaitError(k, nil)
	case k.full():
		err = holdfast.ErrTooManyWaiters
	default:
		w = k.NewWaiter(r.Terms, r.onPlace, e.Calls.Now())
		k.Push(w)
		ticket = e.discipline.Join(k, w)
	}
	st.Unlock()
	if ticket != nil {
		ticket.Enter(ctx)
	}
	return nil, w, err
}

// maxAtOnce is how many calls for a key with several holds may be under way before a caller that may wait makes
// no first attempt: a crowd must not ask for what only a few can get.
const maxAtOnce = 256

// mayAttempt reports whether a caller makes an attempt of its own. The mutex of the key's stripe is held;
// k may be nil.
func (e *Engine) mayAttempt(k *Key, r *request) bool {
	waits := r.wait != 0
	switch {
	case k == nil, !waits && k.Idle(): // nobody here has it or wants it
		return true
	case e.Holds == SharedHolds && !waits: // a reader that does not wait asks in any case
		return true
	case e.Holds == OneHold || k.FirstWaiter() != nil: // those that wait here come first
		return false
	case k.sharedAttempts > 0 && r.Default() && waits: // the attempt of another reader serves this one, too
		return false
	}
	return !waits || k.underWay < maxAtOnce
}

// firstAttempt makes the first attempt for a key, on the caller's goroutine if Redis has just answered: that
// saves an uncontended lock a fifth of its time. mayAttempt has allowed it. The results are those of tryOrWait.
func (e *Engine) firstAttempt(ctx context.Context, k *Key, r *request) (lease *holdfast.Lease, w *Waiter, err error) {
	defer e.Calls.End()
	bounded, done := e.Calls.ContextFor(ctx)
	var a Attempt
	if lease = e.shareAgain(bounded, k, r.Terms); lease == nil {
		a = e.Try(bounded, k, r.Terms, 1)
	}
	done()

	k.Lock()
	if e.shares(r.Terms) {
		k.sharedAttempts--
	}
	if lease == nil {
		lease = e.Adopt(a, nil)
	}
	if lease == nil {
		if err = e.whyNotWait(ctx, k, r, a); err == nil {
			w = k.NewWaiter(r.Terms, r.onPlace, e.Calls.At(a.Start))
			k.pushEarly(w)
			e.discipline.JoinFirst(k, w, a)
		} else {
			e.Undo(a.Orphan)
		}
	}
	k.EndCall()
	k.Unlock()
	lease, err = e.unlockIfOver(ctx, lease, err)
	return lease, w, err
}

// whyNotWait says why the caller of a failed first attempt does not wait; nil: it waits. The
// key's mutex is held.
func (e *Engine) whyNotWait(ctx context.Context, k *Key, r *request, a Attempt) error {
	switch {
	case ctx.Err() != nil:
		return errs.WithWait(ctx, a.Failure())
	case k.closed:
		return holdfast.ErrClosed
	case r.wait == 0, wire.OutcomeOf(a.Err).Final(), a.Err != nil && *e.MaxOutage == 0:
		return a.Failure()
	case k.full():
		return holdfast.ErrTooManyWaiters
	}
	return nil
}

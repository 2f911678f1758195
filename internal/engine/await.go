package engine

import (
	"context"
	"log/slog"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// await sleeps until the wait ends. It calls Redis only to confirm a grant. Its frame is
// small: the stack of a waiting goroutine costs more than the waiter itself.
func (e *Engine) await(ctx context.Context, w *Waiter) (*holdfast.Lease, error) {
	for {
		var got result
		if ctx.Done() == nil && w.places == nil { // nothing else can come; a select takes twice as long
			got = <-w.ready
		} else {
			select {
			case got = <-w.ready:
			case place := <-w.places:
				e.onPlace(ctx, w, place)
				continue
			case <-ctx.Done():
				e.logLongWait(w)
				return e.endWait(ctx, w)
			}
		}
		e.logLongWait(w)
		if got.granted != nil {
			got.lease, got.err = got.granted.Confirm(ctx, w)
			e.Calls.End()
			if got.lease == nil && got.err == nil { // it waits again
				continue
			}
			got.lease, got.err = e.unlockIfOver(ctx, got.lease, got.err)
		}
		e.putBack(w)
		return got.lease, got.err
	}
}

func (e *Engine) logLongWait(w *Waiter) {
	if !e.Logger.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	if d := e.Calls.Now() - w.Since; d > e.Lease {
		e.Logger.Debug("holdfast: waited for longer than a lease", "key", errs.Quote(e.KeyOf(w.key.Name)), "waited", d)
	}
}

// endWait removes a waiter whose context has ended, or whose OnPlace has panicked. A lease that
// it has got by then goes to the next waiter.
func (e *Engine) endWait(ctx context.Context, w *Waiter) (*holdfast.Lease, error) {
	k := w.key
	k.Lock()
	if w.waiting() {
		err := e.discipline.WaitError(k, w)
		k.Remove(w)
		e.discipline.WaiterLeft(k, w)
		k.Unlock()
		e.putBack(w)
		return nil, errs.WithWait(ctx, err)
	}
	k.Unlock()
	got := <-w.ready
	e.putBack(w)
	switch {
	case got.err != nil:
		return nil, got.err
	case got.lease != nil:
		e.unlockLater(got.lease)
	default:
		got.granted.Decline()
		e.Calls.End()
	}
	return nil, errs.WithWait(ctx, holdfast.ErrNotAcquired)
}

// unlockIfOver returns a lease, or the error in place of one, to its caller. If ctx has ended, the caller may be
// gone: the lease is unlocked in the background.
func (e *Engine) unlockIfOver(ctx context.Context, lease *holdfast.Lease, err error) (*holdfast.Lease, error) {
	if lease == nil || ctx.Err() == nil {
		return lease, err
	}
	e.unlockLater(lease)
	return nil, errs.WithWait(ctx, holdfast.ErrNotAcquired)
}

func (e *Engine) unlockLater(lease *holdfast.Lease) {
	e.With(e.Prefix+lease.Key(), func(*Key) { // otherwise Close releases it
		e.Calls.Background(func() { _ = lease.Unlock(context.Background()) })
	})
}

// onPlace runs the function of a waiter. If that panics or ends its goroutine, the call
// ends and gives up its place.
func (e *Engine) onPlace(ctx context.Context, w *Waiter, place int) {
	ended := true
	defer func() {
		if ended {
			_, _ = e.endWait(ctx, w)
		}
	}()
	w.onPlace(place)
	ended = false
}

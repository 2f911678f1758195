package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
)

var registered []func(holdfast.Locker) *Engine

// Register makes the Lockers of a lock kind known to Of. It is for init functions.
func Register[L holdfast.Locker](engineOf func(L) *Engine) {
	registered = append(registered, func(l holdfast.Locker) *Engine {
		if l, ours := l.(L); ours {
			return engineOf(l)
		}
		return nil
	})
}

// Of returns the engine of a Locker of a lock kind: LockAll checks all keys before it takes one, and the command lists
// keys. It returns nil for any other Locker, even for one that wraps such a Locker: LockAll must call the wrapper.
func Of(l holdfast.Locker) *Engine {
	for _, of := range registered {
		if e := of(l); e != nil {
			return e
		}
	}
	return nil
}

// TryLockAll makes one attempt to take distinct keys with one call, all or none. If it
// fails with ErrNotAcquired, the caller takes the keys one by one. It fails this way
// without a call if the backend has no such call, if a key is held or wanted here, or if
// ctx is bound to one.
func (e *Engine) TryLockAll(ctx context.Context, keys []string, opts []holdfast.LockOption) ([]*holdfast.Lease, error) {
	backend, can := e.backend.(AcquiresAll)
	if !can || e.Fencing {
		return nil, holdfast.ErrNotAcquired
	}
	var t Terms
	asks := make([]wire.AcquireRequest, len(keys))
	for i, key := range keys {
		r := request{wait: -1}
		if err := e.fill(&r, key, opts); err != nil {
			return nil, errs.Of("lock", key, err)
		}
		t = r.Terms
		asks[i] = wire.AcquireRequest{Key: r.name, Owner: e.NewOwner(), Lease: t.Lease, Label: t.Label}
	}
	if ctx.Err() != nil {
		return nil, errs.DoneBefore(ctx)
	}
	e.warned.Do(e.warnOfEviction)
	states := make([]*Key, 0, len(keys))
	defer func() {
		for _, k := range states {
			k.finishCall()
		}
	}()
	for i, ask := range asks {
		k, err := e.beginAlone(ctx, ask.Key)
		if err != nil {
			return nil, errs.Of("lock", keys[i], err)
		}
		states = append(states, k)
	}
	bounded, done := e.Calls.ContextFor(ctx)
	defer done()
	start, ok, err := time.Now(), false, errHeldBack
	if e.undoingOf(asks[0].Key, false).awaitRoom(bounded) {
		ok, err = calls.Detached(bounded, e.Calls, "", func(ctx context.Context) (bool, error) {
			return backend.AcquireAll(ctx, asks)
		})
	}
	if ok || err != nil { // otherwise it is perhaps known without a call
		err = e.NoteCall(bounded, asks[0].Key, err)
	}
	attempts := make([]Attempt, len(asks))
	for i, k := range states {
		attempts[i] = e.newAttempt(k, asks[i].Owner, t, start, wire.AcquireReply{OK: ok}, err)
	}
	return e.adoptAll(ctx, states, attempts)
}

// Failed tells the observer that an attempt of TryLockAll, which began at that time, was the
// last one for its keys.
func (e *Engine) Failed(key string, why error, began time.Time) {
	e.observer.failed(key, why, e.Calls.At(began))
}

// beginAlone begins a call for the key of this name, which is neither held nor wanted here.
func (e *Engine) beginAlone(ctx context.Context, name string) (*Key, error) {
	if e.boundTo(ctx, name) != nil {
		return nil, holdfast.ErrNotAcquired
	}
	st := e.stripeOf(name)
	st.Lock()
	defer st.Unlock()
	switch {
	case st.closed:
		return nil, holdfast.ErrClosed
	case st.keys[name] != nil:
		return nil, holdfast.ErrNotAcquired
	}
	return st.beginCall(name), nil
}

// adoptAll begins the sections of all attempts. If one of them failed, it gives all
// keys back.
func (e *Engine) adoptAll(ctx context.Context, states []*Key, attempts []Attempt) ([]*holdfast.Lease, error) {
	leases := make([]*holdfast.Lease, 0, len(states))
	var err error
	for i, k := range states {
		k.Lock()
		if lease := e.Adopt(attempts[i], nil); lease != nil {
			leases = append(leases, lease)
		} else if err == nil {
			err = errs.Of("lock", e.KeyOf(k.Name), attempts[i].Failure())
		}
		k.Unlock()
		e.Undo(attempts[i].Orphan)
	}
	if ctx.Err() != nil {
		err = errs.WithWait(ctx, cmp.Or(err, holdfast.ErrNotAcquired))
	}
	if err == nil {
		return leases, nil
	}
	for _, l := range leases {
		e.unlockLater(l)
	}
	return nil, err
}

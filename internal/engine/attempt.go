package engine

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// ErrTooLate is why an acquire or a confirmation brought no lease.
var ErrTooLate = errors.New("the reply came after the lease was over")

// Attempt is one call for a hold by a fresh owner, with its result.
type Attempt struct {
	Start     time.Time
	Hold      *Hold         // nil unless acquired in time
	Remaining time.Duration // of another's lease, if another holds the key
	Split     bool          // several asked at the same time, and perhaps none holds the key
	Holder    string        // see wire.AcquireReply
	Why       error         // the backend's reason, which matches ErrNotAcquired; nil: it gives none
	Err       error         // why there is no result: no answer, a refusal, ErrTooLate, or it was not sent
	Orphan    *Orphan       // what it may have left in Redis; nil: nothing
}

// Failure is the error of an attempt that did not acquire the key. The key's mutex is held if it has a hold.
func (a Attempt) Failure() error {
	switch {
	case a.Err != nil:
		return calls.WithOutcome(a.Err)
	case a.Hold != nil && a.Hold.lost: // since
		return calls.WithOutcome(ErrTooLate)
	case a.Why != nil:
		return a.Why
	}
	return holdfast.ErrNotAcquired
}

// Try makes one attempt, which reserves so many fences. If it may have been carried out, or its reply
// came too late, it leaves an orphan, which the caller must undo.
func (e *Engine) Try(ctx context.Context, k *Key, t Terms, reserve int64) Attempt {
	a := acquiring{e.backend, wire.AcquireRequest{Key: k.Name, Owner: e.NewOwner(), Lease: t.Lease, Label: t.Label}}
	if t.beside != nil {
		a.ask.Beside = t.beside.Owner()
	} else {
		a.ask.Fencing = e.Fences(reserve)
	}
	start, reply, err := time.Now(), wire.AcquireReply{}, errHeldBack
	switch {
	case e.Calls.Answering(k.Name):
		reply, err = a.send(ctx)
	case e.undoingOf(k.Name, false).awaitRoom(ctx):
		reply, err = calls.Detached(ctx, e.Calls, k.Name, a.send)
	}
	if t.beside != nil {
		reply.Fence, reply.FenceEnd = t.beside.Fence(), t.beside.Fence()
	}
	return e.newAttempt(k, a.ask.Owner, t, start, reply, e.NoteCall(ctx, k.Name, err))
}

// NewOwner makes an identity that is never used again. The leading zero tells our
// owners from Redisson's.
func (e *Engine) NewOwner() string {
	b := make([]byte, 0, 64)
	b = append(append(b, e.LockerID...), ":0"...)
	b = strconv.AppendUint(b, e.owners.Add(1), 10)
	return string(append(b, e.OwnerSuffix...))
}

// acquiring is the call of an attempt.
type acquiring struct {
	backend Backend
	ask     wire.AcquireRequest
}

func (a acquiring) send(ctx context.Context) (wire.AcquireReply, error) {
	return a.backend.Acquire(ctx, a.ask)
}

// newAttempt makes an attempt of the reply to an acquire that began at start, with the error of NoteCall.
func (e *Engine) newAttempt(k *Key, owner string, t Terms, start time.Time, reply wire.AcquireReply, err error) Attempt {
	a := Attempt{Start: start, Err: err}
	if a.Err != nil {
		if wire.OutcomeOf(a.Err).MayHaveRun() {
			a.Orphan = &Orphan{Name: k.Name, Owner: owner, Lease: t.Lease}
		}
		return a
	}
	took := time.Since(start)
	e.rtt.NoteRTT(took)
	switch {
	case reply.Gone:
	case !reply.OK:
		a.Remaining, a.Split, a.Holder, a.Why = reply.Remaining, reply.Split, reply.Holder, reply.Why
	case took < t.Lease-watchdog.Margin(t.Lease):
		a.Hold = e.NewHold(k, owner, t, start, reply, nil)
	default:
		a.Err = ErrTooLate
		a.Orphan = &Orphan{Name: k.Name, Owner: owner, Lease: t.Lease}
	}
	return a
}

// Adopt gives the key the hold of an attempt, and begins its first section. That is for w, whose wait ends,
// or if w is nil for the caller of the attempt. Waiters that may share the hold are served, too. Adopt returns
// nil if there is no hold, or if it has already ended. The key's mutex is held.
func (e *Engine) Adopt(a Attempt, w *Waiter) *holdfast.Lease {
	h := a.Hold
	if h == nil {
		return nil
	}
	k := h.Key
	switch {
	case h.lost:
		e.backend.Abandoned(h.Owner)
		return nil
	case k.closed, // Close has run
		k.Held() && e.Holds == OneHold: // in a queue: Redis has since granted the key to another waiter here
		e.Undo(h.Orphan())
		return nil
	}
	since := e.Calls.At(a.Start)
	if w != nil {
		since = w.Since
	}
	k.add(h)
	lease := h.begin(holdfast.ByCall, since)
	if w != nil {
		k.Serve(w, lease)
	}
	k.serveReaders(h)
	return lease
}

// AdoptGrant makes h the hold of the key and begins its first section, that of w, with the key's mutex
// held. Another hold is lost: Redis has granted the key to h's owner since.
func (e *Engine) AdoptGrant(h *Hold, w *Waiter) *holdfast.Lease {
	for old := range h.Key.holds() {
		e.revoke(old, watchdog.ErrNotOurs)
	}
	h.Key.add(h)
	return h.begin(holdfast.ByGrant, w.Since)
}

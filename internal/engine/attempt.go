package engine

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

var ErrTooLate = errors.New("the reply came after the lease was over")

// Attempt is one call for a hold by a fresh owner, with its result.
type Attempt struct {
	Start     time.Time
	Hold      *Hold         // nil unless acquired in time
	Remaining time.Duration // of another's lease, if another holds the key
	Split     bool          // several asked at once, and perhaps none holds the key
	Unmet     error         // the backend's reason, which matches ErrNotAcquired; nil: it gives none
	Err       error         // why there was no answer
	Orphan    Orphan        // what it may have left in Redis
}

// Orphan is an owner that no caller has but that Redis may know, or come to know.
type Orphan struct {
	Owner string // "": none
	Lease time.Duration
}

// Passing says whether a later attempt may succeed.
func (a Attempt) Passing() bool {
	return !scripts.OutcomeOf(a.Err).Final()
}

// Known is the error of an attempt that did not acquire the key.
func (a Attempt) Known() error {
	switch {
	case a.Err != nil:
		return calls.Known(a.Err)
	case a.Unmet != nil:
		return a.Unmet
	}
	return holdfast.ErrNotAcquired
}

// Attempt makes one attempt. If it may have been carried out, or its reply came too late, it
// leaves an orphan, which the caller has to undo.
func (h *Engine) Attempt(ctx context.Context, k *Key, t Terms, numbers int64) Attempt {
	owner, start := h.NewOwner(), time.Now()
	said, err := h.acquire(ctx, k.Name, owner, t.Lease, numbers)
	h.observer.answered(ctx, k.Name, err)
	return h.judge(k, owner, t, start, said, err)
}

// NewOwner mints an identity that is never used again. The leading zero tells our
// owners from Redisson's.
func (h *Engine) NewOwner() string {
	b := make([]byte, 0, 64)
	b = append(append(b, h.Client...), ":0"...)
	return string(strconv.AppendUint(b, h.owners.Add(1), 10))
}

func (h *Engine) acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error) {
	if h.Calls.Answering(key) { // as detached, but without its closure
		return h.backend.Acquire(ctx, key, owner, lease, numbers)
	}
	if !h.undoingOf(key, false).admit(ctx) {
		return scripts.Acquired{}, errHeldBack
	}
	return calls.Detached(ctx, h.Calls, key, func(ctx context.Context) (scripts.Acquired, error) {
		return h.backend.Acquire(ctx, key, owner, lease, numbers)
	})
}

// judge turns the reply to an acquire that began at start into an attempt.
func (h *Engine) judge(k *Key, owner string, t Terms, start time.Time, said scripts.Acquired, err error) Attempt {
	if seed.TrustFromReply {
		start = time.Now()
	}
	a := Attempt{Start: start, Err: h.Calls.Noted(k.Name, err)}
	switch scripts.OutcomeOf(a.Err) {
	case scripts.Done:
	case scripts.Unknown, scripts.Doubtful:
		if !seed.NoCleanUp {
			a.Orphan = Orphan{owner, t.Lease}
		}
		return a
	default:
		return a
	}
	took := time.Since(start)
	h.trips.Note(took)
	switch {
	case said.Gone:
	case !said.OK:
		a.Remaining, a.Split, a.Unmet = said.Remaining, said.Split, said.Why
	case took < t.Lease-watchdog.Margin(t.Lease):
		a.Hold = h.NewHold(k, owner, t, start, said, nil)
	default:
		a.Err = ErrTooLate
		a.Orphan = Orphan{owner, t.Lease}
	}
	return a
}

// Take makes the hold of an attempt that of the key and begins its first section, for a
// caller who has asked since then, with the key locked. It returns nil if there is no hold, or
// if it has ended meanwhile.
func (h *Engine) Take(k *Key, a Attempt, since time.Time) *holdfast.Lease {
	switch d := a.Hold; {
	case d == nil:
		return nil
	case d.over:
		h.backend.Lost(k.Name, d.Owner)
		return nil
	case k.closed, k.Held(): // queued waiters: Redis granted the key to another waiter here, so this hold is over
		h.Undo(d)
		return nil
	default:
		return h.install(d, holdfast.ByCall, since)
	}
}

// Occupy makes d the hold of the key and begins its first section, that of w, with the key
// locked. Another hold is lost for the given reason: Redis has granted the key to d's owner
// since.
func (h *Engine) Occupy(d *Hold, w *Waiter, replaced error) *holdfast.Lease {
	for old := range d.Key.holds() {
		h.revoke(old, replaced)
	}
	return h.install(d, holdfast.ByGrant, w.Since)
}

func (h *Engine) install(d *Hold, how holdfast.How, since time.Time) *holdfast.Lease {
	d.Key.add(d)
	c := d.newSection()
	h.observer.acquired(&c.first, how, since)
	return &c.first.lease
}

// Outage is a time without answers from Redis.
type Outage struct {
	since time.Time // start of the first attempt that failed
	Err   error     // of the last one
}

// Note begins, extends or ends an outage with the result of an attempt.
func (o *Outage) Note(a Attempt) *Outage {
	if a.Err == nil {
		return nil
	}
	if o == nil {
		o = &Outage{since: a.Start}
	}
	o.Err = a.Known()
	return o
}

// Overdue says why w must not wait any longer after a failed attempt, or nil: Redis
// refused it, or was away for too long.
func (o *Outage) Overdue(w *Waiter, a Attempt, most time.Duration) error {
	if !a.Passing() {
		return a.Known()
	}
	if time.Since(calls.Later(o.since, w.Since)) >= most {
		return o.Err
	}
	return nil
}

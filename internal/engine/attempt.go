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

var errTooLate = errors.New("the reply came after the lease was over")

// attempt is one call for a hold by a fresh owner, with its result.
type attempt struct {
	start     time.Time
	hold      *hold         // nil unless acquired in time
	remaining time.Duration // of another's lease, if another holds the key
	split     bool          // several asked at once, and perhaps none holds the key
	unmet     error         // the backend's reason, which matches ErrNotAcquired; nil: it gives none
	err       error         // why there was no answer
	orphan    orphan        // what it may have left in Redis
}

// orphan is an owner that no caller has but that Redis may know, or come to know.
type orphan struct {
	owner string // "": none
	lease time.Duration
}

// passing says whether a later attempt may succeed.
func (a attempt) passing() bool {
	return !scripts.OutcomeOf(a.err).Final()
}

// known is the error of an attempt that did not acquire the key.
func (a attempt) known() error {
	switch {
	case a.err != nil:
		return calls.Known(a.err)
	case a.unmet != nil:
		return a.unmet
	}
	return holdfast.ErrNotAcquired
}

// attempt makes one attempt. If it may have been carried out, or its reply came too late, it
// leaves an orphan, which the caller has to undo.
func (h *Engine) attempt(ctx context.Context, k *keyState, t Terms, numbers int64) attempt {
	owner, start := h.newOwner(), time.Now()
	said, err := h.acquire(ctx, k.name, owner, t.Lease, numbers)
	h.observer.answered(ctx, k.name, err)
	return h.judge(k, owner, t, start, said, err)
}

// newOwner mints an identity that is never used again. The leading zero tells our
// owners from Redisson's.
func (h *Engine) newOwner() string {
	b := make([]byte, 0, 64)
	b = append(append(b, h.Client...), ":0"...)
	return string(strconv.AppendUint(b, h.owners.Add(1), 10))
}

func (h *Engine) acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error) {
	if h.calls.Answering(key) { // as detached, but without its closure
		return h.backend.Acquire(ctx, key, owner, lease, numbers)
	}
	if !h.undoingOf(key, false).admit(ctx) {
		return scripts.Acquired{}, errHeldBack
	}
	return calls.Detached(ctx, h.calls, key, func(ctx context.Context) (scripts.Acquired, error) {
		return h.backend.Acquire(ctx, key, owner, lease, numbers)
	})
}

// judge turns the reply to an acquire that began at start into an attempt.
func (h *Engine) judge(k *keyState, owner string, t Terms, start time.Time, said scripts.Acquired, err error) attempt {
	if seed.TrustFromReply {
		start = time.Now()
	}
	a := attempt{start: start, err: h.calls.Noted(k.name, err)}
	switch scripts.OutcomeOf(a.err) {
	case scripts.Done:
	case scripts.Unknown, scripts.Doubtful:
		if !seed.NoCleanUp {
			a.orphan = orphan{owner, t.Lease}
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
		a.remaining, a.split, a.unmet = said.Remaining, said.Split, said.Why
	case took < t.Lease-watchdog.Margin(t.Lease):
		a.hold = h.newHold(k, owner, t, start, said, run{})
	default:
		a.err = errTooLate
		a.orphan = orphan{owner, t.Lease}
	}
	return a
}

// take makes the hold of an attempt that of the key and begins its first section, with the
// key locked. It returns nil if there is no hold, or if it has ended meanwhile.
func (h *Engine) take(k *keyState, a attempt) *holdfast.Lease {
	switch d := a.hold; {
	case d == nil:
		return nil
	case d.over:
		h.backend.Lost(k.name, d.owner)
		return nil
	case k.closed, k.hold != nil: // queued waiters: Redis granted the key to another waiter here, so this hold is over
		h.undo(d)
		return nil
	default:
		k.hold = d
		return d.newSection()
	}
}

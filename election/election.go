// Package election elects one leader among the candidates of a group, over any
// [holdfast.Locker]: whoever holds the lock of the group leads. With readers, or with n > 1
// permits, several lead at the same time. A candidate campaigns for that lock, leads while its
// lease lives, which is its term, and resigns by unlocking.
//
// An election promises what its lock promises. Two candidates never lead at the same time where
// the lock never has two holders. A resource that checks the fence of the term,
// [holdfast.Lease.Fence], refuses a leader that stood still and does not yet know that its term
// has ended.
package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/loop"
)

// ErrNotLeader: this candidate does not lead. The text says why.
var ErrNotLeader = errors.New("not the leader")

// pause follows a campaign that Redis has not answered.
const pause = time.Second

// Election is one candidate of a group. Safe for concurrent use.
type Election struct {
	locker   holdfast.Locker       // immutable
	group    string                // immutable
	opts     []holdfast.LockOption // immutable
	running  sync.Mutex            // Run has it
	answered chan struct{}         // closed by answer; immutable
	answer   func()                // immutable

	mu    sync.Mutex
	lease *holdfast.Lease // of the present term; nil: there is none; guarded by mu
	why   error           // there is none, as far as known; guarded by mu
}

// New returns a candidate of a group, which is the key of a lock of locker. It makes no call to
// Redis. The options are those of each campaign: [holdfast.Label] names the candidate,
// [holdfast.MaxHold] bounds a term, and [holdfast.OnPlace] reports the place among the candidates
// of fair. New fails with [holdfast.ErrInvalidArgument] on a nil locker, a nil option, and on
// [holdfast.WaitAtMost], as the context of [Election.Run] bounds its waits.
func New(locker holdfast.Locker, group string, opts ...holdfast.LockOption) (*Election, error) {
	all, err := holdfast.NewLockOptions(opts...)
	switch {
	case locker == nil:
		return nil, errs.Invalid("election: New: locker is nil")
	case err != nil:
		return nil, fmt.Errorf("election: New: %w", err)
	case all.WaitAtMost != nil:
		return nil, errs.Invalid("election: New: WaitAtMost: the context of Run bounds its waits")
	}
	answered := make(chan struct{})
	return &Election{
		locker: locker, group: group, opts: slices.Clone(opts),
		answered: answered, answer: sync.OnceFunc(func() { close(answered) }),
	}, nil
}

// Run campaigns until it leads, and then runs lead. The context of lead is bound to the lease of
// the term, see [holdfast.Lease.Bind]: it ends with ctx and when the term is lost, and
// [holdfast.LeaseFrom] finds the fence of the term in it. lead should return then, as another
// candidate may lead soon after a loss.
//
// Run resigns by unlocking, but only after lead has returned, panicked or ended its goroutine. If
// the term was lost by then, Run drops lead's result and campaigns again. Otherwise it returns that
// result, joined with [holdfast.ErrReleased], ErrClosed or ErrWrongType if one of these ended the
// lease before lead did. So a leader resigns, and Run ends, when lead returns in its term, and when
// ctx ends and lead has returned.
//
// A campaign lasts until ctx ends, however long Redis is unavailable: Run tries again each second
// after [holdfast.ErrUnavailable] and [holdfast.ErrUnknown]. It returns all other errors of Lock, and
// holds nothing then: that of ctx, ErrClosed, ErrTooManyWaiters, ErrInvalidArgument for the group or
// an option, and refusals by Redis, which waiting cannot cure.
//
// An Election has one Run at a time; a second one fails with ErrInvalidArgument. A campaign costs
// the round trips of TryLock and, if another candidate leads, those of Lock.
func (e *Election) Run(ctx context.Context, lead func(context.Context) error) error {
	if lead == nil {
		return errs.Invalid("election: Run: lead is nil")
	}
	if !e.running.TryLock() {
		return errs.Invalid("election: Run: it is running already")
	}
	defer e.running.Unlock()
	for {
		lease, err := e.campaign(ctx)
		switch {
		case err == nil:
			if lost, err := e.term(ctx, lease, lead); !lost {
				return err
			}
		case (errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrUnknown)) && !errors.Is(err, ctx.Err()):
			loop.Sleep(pause, ctx.Done())
		default:
			return err
		}
	}
}

// campaign waits for the lock. A first attempt shows immediately whether another candidate leads.
func (e *Election) campaign(ctx context.Context) (*holdfast.Lease, error) {
	lease, err := e.locker.TryLock(ctx, e.group, e.opts...)
	if errors.Is(err, holdfast.ErrNotAcquired) {
		e.set(nil, err)
		lease, err = e.locker.Lock(ctx, e.group, e.opts...)
	}
	e.set(lease, err)
	return lease, err
}

// term runs lead, and unlocks. It reports whether the lease was lost before.
func (e *Election) term(ctx context.Context, lease *holdfast.Lease, lead func(context.Context) error) (lost bool, err error) {
	defer func() {
		end := lease.Unlock(ctx)
		e.set(nil, end)
		lost, err = errors.Is(end, holdfast.ErrLost), errs.OfDo(err, end)
	}()
	return false, lead(lease.Bind(ctx))
}

func (e *Election) set(lease *holdfast.Lease, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lease, e.why = lease, why
	e.answer()
}

func (e *Election) state() (*holdfast.Lease, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease, e.why
}

// IsLeader returns nil while this candidate leads, and never after its lease has ended; otherwise
// [ErrNotLeader], joined with what is known of the reason: [holdfast.ErrNotAcquired], whose text has
// the label of the leader that the campaign has met, ErrLost while the lead of a lost term has not
// returned, ErrUnavailable, ErrUnknown, or why Run has ended. Until the first attempt of the first Run
// has ended, it waits for that, or until ctx ends. It costs no round trip.
//
// What follows an answer may come later than the end of the lease: see [holdfast.Lease].
func (e *Election) IsLeader(ctx context.Context) error {
	select {
	case <-e.answered:
	case <-ctx.Done():
		select {
		case <-e.answered: // there is no need to wait
		default:
			return fmt.Errorf("%w: %w", ErrNotLeader, ctx.Err())
		}
	}
	lease, why := e.state()
	if lease != nil {
		if why = lease.Err(); why == nil {
			return nil
		}
	}
	if why == nil { // it has resigned
		return ErrNotLeader
	}
	return fmt.Errorf("%w: %w", ErrNotLeader, why)
}

// Bind derives a context for work outside lead that only the leader may do. It ends with the term,
// see [holdfast.Lease.Bind]; without a term it has already ended, with the cause ErrNotLeader. Run
// does not wait for that work before it resigns.
func (e *Election) Bind(ctx context.Context) context.Context {
	if lease, _ := e.state(); lease != nil {
		return lease.Bind(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(ErrNotLeader)
	return ctx
}

// Leader asks Redis who leads. Held reports whether a candidate does, and Label names it. Owner is
// its term: no other term has that owner, except those of candidates that share a locker. Errors
// are those of Inspect, see [holdfast.Operator], and [errors.ErrUnsupported] if the locker is not
// an Operator. It costs the round trips of Inspect.
func (e *Election) Leader(ctx context.Context) (holdfast.Status, error) {
	operator, is := e.locker.(holdfast.Operator)
	if !is {
		return holdfast.Status{}, fmt.Errorf("election: Leader: the locker has no Inspect: %w", errors.ErrUnsupported)
	}
	return operator.Inspect(ctx, e.group)
}

package gocronholdfast

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/names"
)

// Locker is a [gocron.Locker]. Across all processes that share a Redis, no two runs of a job
// overlap, and no other begins for the time that [NewLocker] got, which counts from shortly
// before a run begins. Safe for concurrent use.
type Locker struct {
	locks  holdfast.Locker
	prefix string
	apart  time.Duration

	mu   sync.Mutex
	runs map[string]*holdfast.Lease // guarded by mu; the present run of each job here
}

// NewLocker returns a locker for [gocron.WithDistributedLocker], or for jobs of one interval
// with [gocron.WithDistributedJobLocker]. It fails with [holdfast.ErrInvalidArgument] on nil locks and
// on a bad time.
//
// A job takes the key prefix + its name while it runs, with a lease that is renewed, and
// prefix + its name + ":due" for the time apart. Give each job a name, [gocron.WithName],
// that is the same in all processes. Close of locks gives both keys back: call it only when no
// job runs and the time apart is over, or not at all, as leases end by themselves.
//
// Choose apart longer than clocks can differ and shorter than the time between two due times
// of a job, for example half of it; at least 100 ms, in whole milliseconds. If the due times
// differ between processes, like those of a DurationJob without WithStartAt, choose a little
// less than the interval.
func NewLocker(locks holdfast.Locker, prefix string, apart time.Duration) (*Locker, error) {
	if locks == nil {
		return nil, errs.Invalid("gocronholdfast: NewLocker: locks is nil")
	}
	if err := check.Lease(apart); err != nil {
		return nil, errs.Invalid("gocronholdfast: NewLocker: apart: %w", err)
	}
	return &Locker{locks: locks, prefix: prefix, apart: apart, runs: map[string]*holdfast.Lease{}}, nil
}

// Lock implements [gocron.Locker]. It does not wait: if another process runs the job or has
// begun it within the time apart, it fails with [holdfast.ErrNotAcquired] and gocron skips
// this run. It fails with ErrLost if the time apart has passed before it had the key. Other errors
// are those of TryLock of [holdfast.Locker]: without Redis, no process runs the job. Errors reach
// gocron's listener AfterLockError. It costs two round trips.
func (l *Locker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	key := l.prefix + name
	due, err := l.locks.TryLock(ctx, key+names.Due, holdfast.FixedLease(l.apart)) // ends by itself
	if err != nil {
		return nil, err
	}
	lease, err := l.locks.TryLock(ctx, key)
	switch late := due.Err(); {
	case late != nil && err == nil: // another process may have run it
		return nil, errors.Join(late, lease.Unlock(ctx))
	case late == nil && err != nil && (ctx.Err() != nil || !errors.Is(err, holdfast.ErrNotAcquired)): // another process may have more luck
		return nil, errors.Join(err, due.Unlock(ctx))
	case err != nil:
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[name] = lease
	return &run{l, name, lease}, nil
}

// Bind returns a context for the job of that name, which gocron runs in this process now. It
// is bound to the lease of the run, see [holdfast.Lease.Bind]: it ends when the lock is lost.
// gocron itself does not tell a job about a loss. A job calls Bind once, first of all: after a loss, a
// later call may find the lease of the next run. If this process does not run the job, the context
// has ended, with [holdfast.ErrReleased] as its cause.
func (l *Locker) Bind(ctx context.Context, name string) context.Context {
	l.mu.Lock()
	lease := l.runs[name]
	l.mu.Unlock()
	if lease != nil {
		return lease.Bind(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(holdfast.ErrReleased)
	return ctx
}

// run is one run of a job.
type run struct {
	l     *Locker
	name  string
	lease *holdfast.Lease
}

// Unlock implements [gocron.Lock].
func (r *run) Unlock(ctx context.Context) error {
	r.l.mu.Lock()
	if r.l.runs[r.name] == r.lease {
		delete(r.l.runs, r.name)
	}
	r.l.mu.Unlock()
	return r.lease.Unlock(ctx)
}

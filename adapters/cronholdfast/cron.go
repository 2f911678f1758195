// Package cronholdfast uses holdfast locks to make one of many processes run a job of robfig/cron
// when it is due in all of them.
//
// A lock that is held only while its job runs is too short, as docs/troubleshooting.md says under
// "My job ran twice". So [Once] also blocks a job for a fixed time after each start.
package cronholdfast

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/names"
)

// FuncJob is a job that [Once] gives a context.
type FuncJob func(context.Context)

// Run implements [cron.Job], for use without [Once]. The context never ends.
func (f FuncJob) Run() { f(context.Background()) }

// Once returns a wrapper for one job. Across all processes that share a Redis, no two runs of
// the job overlap, and no other begins for the time apart, which counts from shortly before a run
// begins. The job first takes key + ":due" for the time apart, and then key while it runs, with a
// lease that is renewed. If the time apart has passed by then, the job is skipped. Close of locks gives
// both keys back: call it only when no job runs and the time apart is over, or not at all, as leases end
// by themselves. Once fails with [holdfast.ErrInvalidArgument] on nil locks or a nil log, on a key that is
// empty or too long, and on a bad time.
//
// Choose apart longer than clocks can differ and shorter than the time between two due times,
// for example half of it; at least 100 ms, in whole milliseconds. If the due times differ
// between processes, like those of "@every 1m", choose a little less than the interval.
//
// A job that another process runs or has begun is skipped, with an Info to log unless ctx has ended.
// Everything else is an Error: for example [holdfast.ErrUnavailable] if the job was skipped because Redis
// is unavailable, and [holdfast.ErrLost] if it ran and lost the lock.
//
// A [FuncJob] gets a context that ends when the lock is lost or ctx ends, and that is bound to
// the lease, see [holdfast.LeaseFrom]. Other jobs cannot learn of a loss while they run. The
// wrapper sees a FuncJob only if it is the last of its chain. It costs two round trips before
// the job, and one after it.
func Once(ctx context.Context, locks holdfast.Locker, key string, apart time.Duration, log cron.Logger) (cron.JobWrapper, error) {
	if locks == nil || log == nil {
		return nil, errs.Invalid("cronholdfast: Once: locks or log is nil")
	}
	if err := cmp.Or(check.Length(key), check.Length(key+names.Due)); err != nil {
		return nil, errs.Invalid("cronholdfast: Once: %w", err)
	}
	if err := check.Lease(apart); err != nil {
		return nil, errs.Invalid("cronholdfast: Once: apart: %w", err)
	}
	return func(job cron.Job) cron.Job {
		run := func(context.Context) { job.Run() }
		if f, ok := job.(FuncJob); ok {
			run = f
		}
		return cron.FuncJob(func() {
			switch ran, err := once(ctx, locks, key, apart, run); {
			case err == nil:
			case !ran && ctx.Err() == nil && errors.Is(err, holdfast.ErrNotAcquired):
				log.Info("skip", "key", key)
			case ran && errors.Is(err, holdfast.ErrLost):
				log.Error(err, "job ran, but did not hold its lock to the end", "key", key)
			case ran:
				log.Error(err, "job ran, but its lock did not end as it should", "key", key)
			default:
				log.Error(err, "job skipped", "key", key)
			}
		})
	}, nil
}

// once runs a job, or reports that it did not.
func once(ctx context.Context, locks holdfast.Locker, key string, apart time.Duration, run func(context.Context)) (ran bool, err error) {
	due, err := locks.TryLock(ctx, key+names.Due, holdfast.FixedLease(apart)) // ends by itself
	if err != nil {
		return false, err
	}
	err = locks.Do(ctx, key, func(ctx context.Context) error {
		if late := due.Err(); late != nil { // another process may have run it
			return late
		}
		ran = true
		run(ctx)
		return nil
	}, holdfast.WaitAtMost(0))
	if !ran && due.Err() == nil && (ctx.Err() != nil || !errors.Is(err, holdfast.ErrNotAcquired)) { // another process may have more luck
		err = errors.Join(err, due.Unlock(ctx))
	}
	return ran, err
}

package gocronholdfast_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/gocronholdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func newLocker(t *testing.T, l holdfast.Locker, apart time.Duration) *gocronholdfast.Locker {
	return redistest.Must(gocronholdfast.NewLocker(l, "jobs:", apart))(t)
}

// The clocks of two schedulers differ by 50 ms, and their job is due each minute.
func TestLocker_OneRunForEachDueTime(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		runs  int32
	}{
		"a short job": {20 * time.Millisecond, 10},
		"a long job":  {150 * time.Second, 4}, // at minutes 1, 4, 7 and 10
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locks := redistest.Must(holdfasttest.New())(t)
				var runs, running, overlaps atomic.Int32
				var over atomic.Bool
				job := func() {
					if over.Load() {
						return
					}
					runs.Add(1)
					overlaps.Add(running.Add(1) - 1)
					time.Sleep(c.takes)
					running.Add(-1)
				}
				for _, l := range []holdfast.Locker{locks, locks.Another()} {
					schedule(t, gocron.WithDistributedLocker(newLocker(t, l, 30*time.Second)), gocron.DurationJob(time.Minute), job)
					time.Sleep(50 * time.Millisecond)
				}
				time.Sleep(10 * time.Minute)
				over.Store(true)
				time.Sleep(c.takes) // Shutdown waits for a few seconds only
				require.Zero(t, overlaps.Load())
				require.Equal(t, c.runs, runs.Load())
			})
		})
	}
}

func TestLocker_OnRedis(t *testing.T) {
	var runs atomic.Int32
	refused := make(chan error, 2)
	job := func() { runs.Add(1) }
	for _, l := range redis(t) {
		done := make(chan struct{}, 1)
		schedule(t, gocron.WithDistributedLocker(newLocker(t, l, time.Minute)), gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), job,
			gocron.WithEventListeners(
				gocron.AfterJobRuns(func(uuid.UUID, string) { done <- struct{}{} }),
				gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { refused <- err; done <- struct{}{} })))
		<-done
	}
	require.EqualValues(t, 1, runs.Load())
	require.ErrorIs(t, <-refused, holdfast.ErrNotAcquired)
}

func TestLocker_Bind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := redistest.Must(holdfasttest.New(holdfast.WithFencing()))(t)
		once := newLocker(t, locks, time.Minute)
		var fence int64
		var began, lost, ended error
		schedule(t, gocron.WithDistributedLocker(once), gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), func(ctx context.Context) {
			ctx = once.Bind(ctx, "job")
			began, fence = ctx.Err(), holdfast.LeaseFrom(ctx).Fence()
			lost = locks.Lose("jobs:job")
			<-ctx.Done()
			ended = context.Cause(ctx)
		})
		synctest.Wait()
		require.NoError(t, began)
		require.NoError(t, lost)
		require.NotZero(t, fence)
		require.ErrorIs(t, ended, holdfast.ErrLost)
		require.ErrorIs(t, context.Cause(once.Bind(t.Context(), "job")), holdfast.ErrReleased)
	})
}

// failing is a locker whose run key cannot be had.
type failing struct {
	holdfast.Locker
	err error
}

func (f failing) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	if key == "jobs:job" {
		return nil, f.err
	}
	return f.Locker.TryLock(ctx, key, opts...)
}

// A process without Redis leaves the due time to another one. A job that still runs is not
// due again.
func TestLocker_DueAfterAnError(t *testing.T) {
	for want, err := range map[error]error{nil: holdfast.ErrUnavailable, holdfast.ErrNotAcquired: holdfast.ErrNotAcquired} {
		locks, _ := holdfasttest.New()
		_, got := newLocker(t, failing{locks, err}, time.Minute).Lock(t.Context(), "job")
		require.ErrorIs(t, got, err)
		lock, got := newLocker(t, locks.Another(), time.Minute).Lock(t.Context(), "job")
		require.ErrorIs(t, got, want)
		if want == nil {
			require.NoError(t, lock.Unlock(t.Context()))
		}
	}
}

// between does something before a run gets its key.
type between struct {
	holdfast.Locker
	does func() error
}

func (b between) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	if !strings.HasSuffix(key, ":due") {
		if err := b.does(); err != nil {
			return nil, err
		}
	}
	return b.Locker.TryLock(ctx, key, opts...)
}

// While Redis answers, the time apart passes: another process may have run the job. Or ctx ends, and
// another process should.
func TestLocker_BetweenItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := redistest.Must(holdfasttest.New())(t)
		defer locks.Close()
		ctx, cancel := context.WithCancel(t.Context())
		next := func() {
			lock := redistest.Must(newLocker(t, locks.Another(), time.Minute).Lock(t.Context(), "job"))(t)
			require.NoError(t, lock.Unlock(t.Context()))
			time.Sleep(time.Minute)
		}
		_, err := newLocker(t, between{locks, func() error { time.Sleep(2 * time.Minute); return nil }}, time.Minute).Lock(ctx, "job")
		require.ErrorIs(t, err, holdfast.ErrLost)
		next()
		_, err = newLocker(t, between{locks, func() error {
			cancel()
			return fmt.Errorf("%w: %w", holdfast.ErrNotAcquired, context.Canceled)
		}}, time.Minute).Lock(ctx, "job")
		require.ErrorIs(t, err, context.Canceled)
		next()
	})
}

func TestNewRefuses(t *testing.T) {
	locks := redistest.Must(holdfasttest.New())(t)
	_, noLocks := gocronholdfast.NewLocker(nil, "", time.Second)
	_, short := gocronholdfast.NewLocker(locks, "", 99*time.Millisecond)
	_, fraction := gocronholdfast.NewLocker(locks, "", time.Second+1)
	_, long := gocronholdfast.NewLocker(locks, "", 101*365*24*time.Hour)
	_, elector := gocronholdfast.NewElector(nil, "")
	for _, err := range []error{noLocks, short, fraction, long, elector} {
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
	require.ErrorContains(t, elector, "gocronholdfast: NewElector: locks is nil")
}

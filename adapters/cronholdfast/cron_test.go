package cronholdfast_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/cronholdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// All processes of a program do this. A program has an rlock.Locker where the example has a
// double, and "0 3 * * *" where it has "@every 1s".
func Example() {
	ctx := context.Background()
	locks, err := holdfasttest.New()
	if err != nil {
		panic(err)
	}
	once, err := cronholdfast.Once(ctx, locks, "jobs:report", time.Hour, cron.DefaultLogger)
	if err != nil {
		panic(err)
	}
	done := make(chan struct{})
	report := cronholdfast.FuncJob(func(ctx context.Context) {
		fmt.Println("reporting", ctx.Err()) // ctx ends if the lock is lost
		close(done)
	})
	c := cron.New()
	if _, err := c.AddJob("@every 1s", cron.NewChain(cron.Recover(cron.DefaultLogger), once).Then(report)); err != nil {
		panic(err)
	}
	c.Start()
	<-done
	<-c.Stop().Done()
	// Output: reporting <nil>
}

// log keeps what it gets.
type log struct {
	skips  atomic.Int32
	errors chan error
	texts  chan string
}

func newLog() *log { return &log{errors: make(chan error, 100), texts: make(chan string, 100)} }

func (l *log) Info(string, ...any) { l.skips.Add(1) }

func (l *log) Error(err error, text string, _ ...any) {
	l.errors <- err
	l.texts <- text
}

func newLocks(t *testing.T, opts ...holdfast.Option) *holdfasttest.Locker {
	locks, err := holdfasttest.New(opts...)
	require.NoError(t, err)
	return locks
}

func wrap(t *testing.T, locks holdfast.Locker, apart time.Duration, l *log, job cron.Job) cron.Job {
	w, err := cronholdfast.Once(t.Context(), locks, "job", apart, l)
	require.NoError(t, err)
	return w(job)
}

// late is each minute of a clock that is late.
type late time.Duration

func (l late) Next(now time.Time) time.Time {
	return now.Add(-time.Duration(l)).Truncate(time.Minute).Add(time.Minute + time.Duration(l))
}

// The clocks of two processes differ by 50 ms, and their job is due each minute.
func TestOnce_OneRunForEachDueTime(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		runs  int32
	}{
		"a short job": {20 * time.Millisecond, 10},
		"a long job":  {150 * time.Second, 4}, // at minutes 1, 4, 7 and 10
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locks := newLocks(t)
				l := newLog()
				var runs, running, overlaps atomic.Int32
				job := cron.FuncJob(func() {
					runs.Add(1)
					overlaps.Add(running.Add(1) - 1)
					time.Sleep(c.takes)
					running.Add(-1)
				})
				var crons []*cron.Cron
				time.Sleep(time.Second) // past the full minute at which a bubble begins
				for i, locks := range []holdfast.Locker{locks, locks.Another()} {
					s := cron.New()
					s.Schedule(late(time.Duration(i)*50*time.Millisecond), wrap(t, locks, 30*time.Second, l, job))
					s.Start()
					crons = append(crons, s)
				}
				time.Sleep(10*time.Minute + 10*time.Second)
				first, second := crons[0].Stop(), crons[1].Stop()
				<-first.Done()
				<-second.Done()
				require.Zero(t, overlaps.Load())
				require.Equal(t, c.runs, runs.Load())
				require.Equal(t, 20-c.runs, l.skips.Load())
				require.Empty(t, l.errors)
			})
		})
	}
}

func TestOnce_Loss(t *testing.T) {
	locks := newLocks(t, holdfast.WithFencing())
	l := newLog()
	wrap(t, locks, time.Minute, l, cronholdfast.FuncJob(func(ctx context.Context) {
		require.NotZero(t, holdfast.LeaseFrom(ctx).Fence())
		require.NoError(t, locks.Lose("job"))
		require.ErrorIs(t, context.Cause(ctx), holdfast.ErrLost)
	})).Run()
	require.ErrorIs(t, <-l.errors, holdfast.ErrLost)
	require.Contains(t, <-l.texts, "did not hold its lock to the end")
}

// A job that ran under its lock did so, even if Redis is away when it ends.
func TestOnce_ReleaseUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := newLocks(t)
		l := newLog()
		wrap(t, locks, time.Minute, l, cron.FuncJob(func() { locks.Outage(time.Hour) })).Run()
		require.Empty(t, l.errors)

		locks.Outage(0)
		time.Sleep(time.Minute)
		wrap(t, locks, time.Minute, l, cron.FuncJob(func() { require.NoError(t, locks.Close()) })).Run()
		require.ErrorIs(t, <-l.errors, holdfast.ErrClosed)
		require.Contains(t, <-l.texts, "its lock did not end as it should")
	})
}

// failing is a locker that cannot have the key of a run.
type failing struct{ holdfast.Locker }

func (failing) Do(context.Context, string, func(context.Context) error, ...holdfast.LockOption) error {
	return holdfast.ErrUnavailable
}

// A process without Redis leaves the due time to another one.
func TestOnce_DueAfterAnError(t *testing.T) {
	locks := newLocks(t)
	l := newLog()
	wrap(t, failing{locks}, time.Minute, l, cron.FuncJob(func() { t.Error("ran") })).Run()
	require.ErrorIs(t, <-l.errors, holdfast.ErrUnavailable)
	ran := false
	wrap(t, locks.Another(), time.Minute, l, cron.FuncJob(func() { ran = true })).Run()
	require.True(t, ran)
}

// between does something between the two calls of a run.
type between struct {
	holdfast.Locker
	does func() error
}

func (b between) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) error {
	if err := b.does(); err != nil {
		return err
	}
	return b.Locker.Do(ctx, key, f, opts...)
}

// While Redis answers, the time apart passes: another process may have run the job. Or ctx ends, and
// another process should.
func TestOnce_BetweenItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := newLocks(t)
		defer locks.Close()
		gone, cancel := context.WithCancel(t.Context())
		for why, does := range map[error]func() error{
			holdfast.ErrLost: func() error { time.Sleep(2 * time.Minute); return nil },
			context.Canceled: func() error { cancel(); return fmt.Errorf("%w: %w", holdfast.ErrNotAcquired, context.Canceled) },
		} {
			ctx, l := t.Context(), newLog()
			if why == context.Canceled {
				ctx = gone
			}
			w, err := cronholdfast.Once(ctx, between{locks, does}, "job", time.Minute, l)
			require.NoError(t, err)
			w(cron.FuncJob(func() { t.Error("ran") })).Run()
			require.ErrorIs(t, <-l.errors, why)
			require.Equal(t, "job skipped", <-l.texts)
			ran := false
			wrap(t, locks.Another(), time.Minute, l, cron.FuncJob(func() { ran = true })).Run()
			require.True(t, ran)
			time.Sleep(time.Minute)
		}
	})
}

// A panic is that of the job, and frees the key of the run.
func TestOnce_Panic(t *testing.T) {
	locks := newLocks(t)
	require.PanicsWithValue(t, "no paper", wrap(t, locks, time.Minute, newLog(), cron.FuncJob(func() { panic("no paper") })).Run)
	lease, err := locks.TryLock(t.Context(), "job")
	require.NoError(t, err)
	require.NoError(t, lease.Unlock(t.Context()))
}

func TestOnceRefuses(t *testing.T) {
	locks := newLocks(t)
	for _, c := range []struct {
		locks holdfast.Locker
		key   string
		apart time.Duration
		log   cron.Logger
	}{
		{nil, "job", time.Second, newLog()}, {locks, "", time.Second, newLog()}, {locks, "job", time.Second, nil},
		{locks, "job", 99 * time.Millisecond, newLog()}, {locks, "job", time.Second + 1, newLog()},
		{locks, "job", 101 * 365 * 24 * time.Hour, newLog()}, {locks, strings.Repeat("j", 1<<10), time.Second, newLog()},
	} {
		_, err := cronholdfast.Once(t.Context(), c.locks, c.key, c.apart, c.log)
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
}

// A locker judges a key with its prefix, which mends this one.
func TestOnce_WithPrefix(t *testing.T) {
	locks := newLocks(t)
	_, err := cronholdfast.Once(t.Context(), locks, "{job}", time.Minute, newLog())
	require.NoError(t, err)
}

package gocronholdfast_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/gocronholdfast"
	"github.com/holdfast-go/holdfast/election"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftovers()...) }

// Two processes of one program each make a scheduler like this. A program has an rlock.Locker
// where the example has a double.
func Example() {
	locks, err := holdfasttest.New()
	if err != nil {
		panic(err)
	}
	once, err := gocronholdfast.NewLocker(locks, "jobs:", 30*time.Second)
	if err != nil {
		panic(err)
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(once))
	if err != nil {
		panic(err)
	}
	done := make(chan struct{})
	_, err = scheduler.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(func(ctx context.Context) error {
		defer close(done)
		ctx = once.Bind(ctx, "report") // ends if the lock is lost
		fmt.Println("reporting")
		return context.Cause(ctx)
	}), gocron.WithName("report"), gocron.JobOption(gocron.WithStartImmediately()))
	if err != nil {
		panic(err)
	}
	scheduler.Start()
	<-done
	if err := scheduler.Shutdown(); err != nil {
		panic(err)
	}
	// Output: reporting
}

// Of all processes, one runs the jobs.
func ExampleElector() {
	locks, err := holdfasttest.New()
	if err != nil {
		panic(err)
	}
	leader, err := gocronholdfast.NewElector(locks, "jobs:leader")
	if err != nil {
		panic(err)
	}
	defer leader.Close()
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(leader))
	if err != nil {
		panic(err)
	}
	fmt.Println(leader.IsLeader(context.Background()))
	if err := scheduler.Shutdown(); err != nil {
		panic(err)
	}
	// Output: <nil>
}

// schedule starts a scheduler with one job, until the test or the bubble ends.
func schedule(t *testing.T, o gocron.SchedulerOption, when gocron.JobDefinition, job any, opts ...gocron.JobOption) gocron.Scheduler {
	s := redistest.Must(gocron.NewScheduler(o))(t)
	_, err := s.NewJob(when, gocron.NewTask(job), append(opts, gocron.WithName("job"))...)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
	return s
}

// redis returns two lockers, as two processes have them.
func redis(t *testing.T) (both [2]*rlock.Locker) {
	server := redistest.Start(t)
	for i := range both {
		l := redistest.Must(rlock.New(server.Client(t)))(t)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		both[i] = l
	}
	return both
}

func newElector(t *testing.T, l holdfast.Locker) *gocronholdfast.Elector {
	e := redistest.Must(gocronholdfast.NewElector(l, "leader"))(t)
	t.Cleanup(e.Close)
	return e
}

// One scheduler runs all jobs, until it closes; then the other one does.
func TestElector_OneSchedulerRunsAllJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := redistest.Must(holdfasttest.New())(t)
		var runs [2]atomic.Int32
		var electors [2]*gocronholdfast.Elector
		for i, l := range []holdfast.Locker{locks, locks.Another()} {
			electors[i] = newElector(t, l)
			synctest.Wait()
			schedule(t, gocron.WithDistributedElector(electors[i]), gocron.DurationJob(time.Minute), func() { runs[i].Add(1) })
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, []int32{5, 0}, []int32{runs[0].Load(), runs[1].Load()})
		electors[0].Close()
		electors[0].Close()
		require.ErrorIs(t, electors[0].IsLeader(t.Context()), election.ErrNotLeader)
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, []int32{5, 5}, []int32{runs[0].Load(), runs[1].Load()})
	})
}

func TestElector_Loses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := redistest.Must(holdfasttest.New())(t)
		first := newElector(t, locks)
		require.NoError(t, first.IsLeader(t.Context()))
		second := newElector(t, locks.Another())
		require.ErrorIs(t, second.IsLeader(t.Context()), holdfast.ErrNotAcquired)
		ctx := first.Bind(t.Context())
		require.NoError(t, ctx.Err())
		synctest.Wait() // the second one waits

		require.NoError(t, locks.Lose("leader"))
		require.ErrorIs(t, first.IsLeader(t.Context()), election.ErrNotLeader)
		require.ErrorIs(t, context.Cause(ctx), holdfast.ErrLost)
		require.Error(t, first.Bind(t.Context()).Err())
		synctest.Wait()
		require.NoError(t, second.IsLeader(t.Context()))

		locks.Outage(2 * time.Minute)
		time.Sleep(holdfast.DefaultLease + time.Minute)
		require.ErrorIs(t, second.IsLeader(t.Context()), holdfast.ErrUnavailable)
		time.Sleep(time.Minute)
		require.NotEqual(t, first.IsLeader(t.Context()) == nil, second.IsLeader(t.Context()) == nil, "one is the leader again")
	})
}

func TestElector_OnRedis(t *testing.T) {
	both := redis(t)
	first := newElector(t, both[0])
	require.NoError(t, first.IsLeader(t.Context()))
	second := newElector(t, both[1])
	require.ErrorIs(t, second.IsLeader(t.Context()), holdfast.ErrNotAcquired)
	first.Close()
	require.ErrorIs(t, first.IsLeader(t.Context()), election.ErrNotLeader)
	require.Eventually(t, func() bool { return second.IsLeader(t.Context()) == nil }, redistest.Patience, time.Millisecond)
	require.NoError(t, both[1].Close())
	require.ErrorIs(t, second.IsLeader(t.Context()), holdfast.ErrClosed)
}

// A caller that does not wait for the first attempt is no leader.
func TestElector_FirstAttempt(t *testing.T) {
	locks := redistest.Must(holdfasttest.New())(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hangs := hanging{locks, make(chan struct{})}
	e := newElector(t, hangs)
	require.ErrorIs(t, e.IsLeader(ctx), context.Canceled)
	close(hangs.on)
	require.NoError(t, e.IsLeader(t.Context()))
}

// hanging is a locker whose TryLock waits.
type hanging struct {
	holdfast.Locker
	on chan struct{}
}

func (h hanging) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	<-h.on
	return h.Locker.TryLock(ctx, key, opts...)
}

package gocronholdfast_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/adapters/gocronholdfast"
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

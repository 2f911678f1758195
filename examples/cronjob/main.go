// Cronjob has three processes with one cron job each, which is due every two seconds. One of them runs each due time.
//
//	go run -C examples/cronjob .                          needs no server
//	go run -C examples/cronjob . -lock=false              without the lock, each of the three runs it
//	go run -C examples/cronjob . -redis localhost:6379    on a real Redis
//
// The clocks of the processes differ by 50 ms, and the job takes 20 ms. So a lock that is held only while the job runs
// would be free again when the next process asks, see docs/adapters.md: Once also blocks the job for a time after its start.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/adapters/cronholdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/rlock"
)

const processes = 3

var (
	runs  = flag.Int("runs", 3, "due times at least")
	every = flag.Duration("every", 2*time.Second, "time between due times")
	lock  = flag.Bool("lock", true, "use the lock; false shows what happens without it")
)

func main() { demo.MainOnRedis(run, process) }

// process is one of the machines.
func process(ctx context.Context, redis *demo.Redis, number int) error {
	locker, err := rlock.New(redis)
	if err != nil {
		return err
	}
	// No Close: it would free the due times of jobs that have just begun. They end by themselves.
	// It logs errors: what another process runs is no error.
	logger := cron.PrintfLogger(log.New(os.Stderr, fmt.Sprintf("process %d: ", number), 0))
	// The time apart is longer than clocks differ, and shorter than the time between due times.
	once, err := cronholdfast.Once(ctx, locker, redis.Key("report"), (*every * 3 / 4).Truncate(time.Millisecond), logger)
	if err != nil {
		return err
	}

	var report cron.Job = cronholdfast.FuncJob(func(ctx context.Context) { // ctx ends if the lock is lost
		due := time.Now().Truncate(*every).Format(time.TimeOnly)
		if err := demo.Sleep(ctx, 20*time.Millisecond); err != nil {
			logger.Error(err, "report")
			return
		}
		line := fmt.Sprintf("%s in process %d", due, number)
		if err := redis.Do(ctx, redis.B().Rpush().Key(redis.Key("runs")).Element(line).Build()).Error(); err != nil {
			logger.Error(err, "report")
		}
	})
	if *lock {
		report = once(report)
	}
	c := cron.New(cron.WithLogger(logger))
	c.Schedule(clock(number)*clock(50*time.Millisecond), report) // in a program: c.AddJob("0 3 * * *", report)
	c.Start()
	if err := redis.Do(ctx, redis.B().Incr().Key(redis.Key("ready")).Build()).Error(); err != nil {
		return err
	}
	<-ctx.Done()
	<-c.Stop().Done() // the end of the job that runs
	return nil
}

// clock is a schedule that is due every so often, by a clock that is late.
type clock time.Duration

func (late clock) Next(now time.Time) time.Time {
	return now.Add(-time.Duration(late)).Truncate(*every).Add(*every + time.Duration(late))
}

func run(ctx context.Context, redis *demo.Redis) error {
	if *runs < 1 || *every < time.Second {
		return errors.New("-runs and -every: at least 1, and 1s")
	}
	g, running := demo.NewGroup(ctx)
	for i := range processes {
		g.Go(func() error { return demo.Run(running, i+1) })
	}
	fmt.Printf("A job is due every %v in %d processes.\n", *every, processes)
	over := errors.New("over")
	g.Go(func() error {
		if err := demo.Until(running, processes, func(ctx context.Context) (int, error) {
			return redis.Number(ctx, redis.Key("ready"))
		}); err != nil {
			return err
		}
		first := time.Now().Truncate(*every).Add(*every)
		middle := first.Add(time.Duration(*runs)**every - *every/2) // between two due times
		return cmp.Or(demo.Sleep(running, time.Until(middle)), over)
	})
	if err := g.Wait(); err != over {
		return err
	}
	lines, err := redis.Do(ctx, redis.B().Lrange().Key(redis.Key("runs")).Start(0).Stop(-1).Build()).AsStrSlice()
	if err != nil {
		return err
	}
	due := map[string]int{}
	for _, line := range lines {
		fmt.Println(line)
		due[line[:len(time.TimeOnly)]]++
	}
	if len(lines) != len(due) {
		return fmt.Errorf("WRONG: %d due times, and %d runs", len(due), len(lines))
	}
	fmt.Printf("%d due times, and as many runs.\n", len(due))
	return nil
}

// Ticketqueue has customers of several processes queue for one counter. The fair lock serves them in the order in
// which they came, over all processes, whichever process dies.
//
//	go run ./examples/ticketqueue                          100 customers; two of four processes die
//	go run ./examples/ticketqueue -fair=false              the same with a lock that is not fair
//	go run ./examples/ticketqueue -kill=false              no process dies
//	go run ./examples/ticketqueue -redis localhost:6379    on a real Redis
//
// counter.go shows the work under the lock. This file starts the program again for each process. Customer 1 comes to
// process 1, customer 2 to process 2 and so on, each when the one before stands in the queue. Meanwhile the counter
// is closed: the parent holds the lock.
//
// When a quarter of the customers have been served, process 1 is killed while its customers wait. Redis sees that its
// connection is closed, and the next grant goes to a living waiter. When half of them have been served, process 2 is
// killed at the counter, which stays shut until its lease ends. A process that stands still for longer than -lease
// counts as dead as well: its customers enter again at the end, and are shown as overtaken. On a very busy machine,
// take a longer lease.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/examples/internal/demo"
)

var (
	customers = flag.Int("customers", 100, "customers that come")
	processes = flag.Int("processes", 4, "processes to which they come")
	lease     = flag.Duration("lease", 2*time.Second, "lease of the lock: the counter of a killed process is free again after this time")
	isFair    = flag.Bool("fair", true, "use the fair lock; false shows what happens without it")
	kill      = flag.Bool("kill", true, "kill process 1 (SIGKILL) while its customers wait, and process 2 at the counter")
)

func main() { demo.MainOnRedis(day, customersOf) }

// customersOf is one process. Its customers come one after another and wait side by side.
func customersOf(ctx context.Context, redis *demo.Redis, number int) error {
	c, err := openCounter(redis)
	if err != nil {
		return err
	}
	defer c.locker.Close()
	c.dies = *kill && number == 2
	g, ctx := demo.NewGroup(ctx)
	g.Go(func() error {
		for n := number; n <= *customers; n += *processes {
			if err := demo.Until(ctx, n-1, c.arrived); err != nil {
				return err
			}
			g.Go(func() error { return c.visit(ctx, n) })
		}
		if *kill && number == 1 {
			if err := demo.Until(ctx, *customers/4, func(ctx context.Context) (int, error) {
				served, err := c.served(ctx)
				return len(served), err
			}); err != nil {
				return err
			}
			demo.Die()
		}
		return nil
	})
	return g.Wait()
}

// day is the parent. It opens the counter when all customers have come, and at the end judges the list of the served.
func day(ctx context.Context, redis *demo.Redis) error {
	if *customers < 1 || *processes < 1 || *kill && (*customers < 4 || *processes < 3) {
		return errors.New("-customers and -processes: at least 1, and with -kill at least 4 -customers and 3 -processes")
	}
	c, err := openCounter(redis)
	if err != nil {
		return err
	}
	defer c.locker.Close()
	fmt.Printf("%d customers come to %d processes.\n", *customers, *processes)
	died := make([]bool, *processes+1)
	g, running := demo.NewGroup(ctx)
	g.Go(func() error {
		return c.locker.Do(running, redis.Key("lock"), func(ctx context.Context) error {
			for i := range *processes {
				g.Go(func() error {
					err := demo.Run(running, i+1)
					if *kill && errors.Is(err, demo.ErrKilled) {
						fmt.Printf("Process %d was killed.\n", i+1)
						died[i+1], err = true, nil
					}
					return err
				})
			}
			return demo.Until(ctx, *customers, c.arrived)
		})
	})
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	served, err := c.served(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("the list of the served cannot be read: %w", err)
	}
	return judge(served, died, ctx.Err() != nil)
}

// judge prints which customers were served, and fails if the list of the served is wrong.
func judge(served []int, died []bool, early bool) error {
	turn := make(map[int]int) // place in the list, by customer
	overtaken, twice, last := 0, 0, 0
	for i, n := range served {
		if turn[n] > 0 || n > *customers {
			twice++
		}
		turn[n] = i + 1
		if n < last {
			overtaken++
		}
		last = max(last, n)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\nprocess\tcustomers\tserved\t")
	lost := 0
	for p := 1; p <= *processes; p++ {
		came, got, fate := 0, 0, ""
		for n := p; n <= *customers; n += *processes {
			came++
			got += min(1, turn[n])
		}
		if died[p] {
			fate = "killed"
		} else {
			lost += came - got
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\n", p, came, got, fate)
	}
	w.Flush()
	fmt.Printf("\nIn the order of service: %s\n", rueidis.JSON(served))
	switch {
	case overtaken+twice > 0 || lost > 0 && !early:
		return fmt.Errorf("WRONG: %d customers were overtaken, %d served twice, %d lost", overtaken, twice, lost)
	case early:
		fmt.Println("Stopped early. Those served were served in the order in which they came.")
	default:
		fmt.Println("All is well: the customers of all living processes were served, in the order in which they came.")
	}
	return nil
}

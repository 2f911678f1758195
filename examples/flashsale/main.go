// Flashsale sells scarce goods to a crowd, from many processes at once, and then checks its own books.
//
//	go run ./examples/flashsale                          2000 buyers, 3 items, 100 of each
//	go run ./examples/flashsale -lock=false              the same without locks: it oversells
//	go run ./examples/flashsale -kill                    one process dies while it holds a lock
//	go run ./examples/flashsale -redis localhost:6379    on a real Redis
//
// shop.go shows the work under the lock. This file starts the processes, which place a share of the orders each. One
// that was killed begins anew: an order that is already in the book changes nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/rlock"
)

var (
	buyers     = flag.Int("buyers", 2000, "buyers, each with one order")
	units      = flag.Int("stock", 100, "units in stock of each item")
	processes  = flag.Int("processes", 4, "processes that sell")
	goroutines = flag.Int("goroutines", 16, "goroutines of each process")
	lease      = flag.Duration("lease", 2*time.Second, "lease of the locks: the lock of a killed process is free again after this time")
	lock       = flag.Bool("lock", true, "use locks; false shows what happens without them")
	kill       = flag.Bool("kill", false, "kill process 1 (SIGKILL) inside its critical section")
	address    = flag.String("redis", "", demo.RedisUsage)
)

func main() { demo.Main(sale, seller) }

// seller is one process. It places its share of the orders.
func seller(ctx context.Context, number int) error {
	redis, err := demo.OpenRedis("")
	if err != nil {
		return err
	}
	defer redis.Close()
	s := &shop{redis: redis, dieAt: -1}
	if *lock {
		locker, err := rlock.New(redis, rlock.WithLease(*lease), rlock.WithFencing())
		if err != nil {
			return err
		}
		defer locker.Close()
		s.locker = locker
	}
	mine := make(chan order, *buyers)
	for i := number; i <= *buyers; i += *processes {
		mine <- orderOf(i)
		if *kill && number == 1 && i <= *units { // by then, about half of the stock is sold
			s.dieAt = i
		}
	}
	close(mine)
	g, ctx := demo.NewGroup(ctx)
	for range *goroutines {
		g.Go(func() error {
			for o := range mine {
				if err := s.serve(ctx, o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// sale is the parent. It fills the shop, starts the sellers and reads the books.
func sale(ctx context.Context) error {
	if min(*buyers, *processes, *goroutines) < 1 {
		return errors.New("-buyers, -processes and -goroutines: at least 1")
	}
	redis, err := demo.OpenRedis(*address)
	if err != nil {
		return err
	}
	defer redis.Close()
	s := &shop{redis: redis}
	for item := range items {
		fill := redis.B().Hset().Key(s.key("item", item)).FieldValue().FieldValue("stock", strconv.Itoa(*units)).Build()
		if err := redis.Do(ctx, fill).Error(); err != nil {
			return err
		}
	}
	fmt.Printf("%d processes × %d goroutines sell %d items, %d of each.\n", *processes, *goroutines, items, *units)
	began := time.Now()
	g, running := demo.NewGroup(ctx)
	for i := range *processes {
		g.Go(func() error {
			err := demo.Run(running, i+1)
			if *kill && errors.Is(err, demo.ErrKilled) {
				fmt.Printf("Process %d was killed while it held a lock. It starts again.\n", i+1)
				err = demo.Run(running, i+1, "-kill=false")
			}
			return err
		})
	}
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Printf("The sale is over after %v.\n\n", time.Since(began).Round(time.Millisecond))
	return s.audit(context.WithoutCancel(ctx), ctx.Err() != nil)
}

// audit prints the books and fails if they are wrong.
func (s *shop) audit(ctx context.Context, early bool) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "item\torders\tserved\tsold out\tunits\tleft")
	placed, oversold, adrift := 0, 0, 0
	for item := range items {
		book, err := s.redis.Do(ctx, s.redis.B().Hgetall().Key(s.key("item", item)).Build()).AsIntMap()
		if err != nil {
			return fmt.Errorf("the books cannot be read: %w", err)
		}
		left := int(book["stock"])
		delete(book, "stock")
		delete(book, "fence")
		served, sold := 0, 0
		for _, n := range book {
			sold += int(n)
			served += min(1, int(n))
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\n", item, len(book), served, len(book)-served, sold, left)
		placed += len(book)
		oversold += max(0, sold-*units)
		adrift += max(sold+left-*units, *units-sold-left)
	}
	w.Flush()
	fmt.Println()
	switch {
	case oversold+adrift > 0:
		return fmt.Errorf("WRONG: %d units were sold that do not exist, and stock and books differ by %d", oversold, adrift)
	case early:
		fmt.Println("Stopped early. What was sold was there.")
	case placed != *buyers:
		return fmt.Errorf("WRONG: %d orders came and %d are in the books", *buyers, placed)
	default:
		fmt.Println("All is well: every order is in the books once, and what was sold was there.")
	}
	return nil
}

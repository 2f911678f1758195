// Flashsale sells scarce goods to a crowd, from four processes at once, and then checks its own books.
//
//	go run ./examples/flashsale                          2000 buyers, 3 items, 100 of each
//	go run ./examples/flashsale -lock=false              the same without locks: it oversells
//	go run ./examples/flashsale -kill                    one process dies while it holds a lock
//	go run ./examples/flashsale -redis localhost:6379    on a real Redis
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/rlock"
)

var (
	buyers = flag.Uint("buyers", 2000, "buyers, each with one order")
	units  = flag.Uint64("stock", 100, "units in stock of each item")
	lease  = flag.Duration("lease", 2*time.Second, "lease of the locks: the lock of a killed process is free again after this time")
	lock   = flag.Bool("lock", true, "use locks; false shows what happens without them")
	kill   = flag.Bool("kill", false, "kill process 1 (SIGKILL) inside its critical section")
)

const items, processes, goroutines = 3, 4, 16

func main() { demo.MainOnRedis(sale, seller) }

// shop sells each item under a lock of its own. The row of an item has its stock and its orders.
type shop struct {
	demo.Table
	locker *rlock.Locker // nil: without any lock
}

// order is that of a buyer. It wants one to three units of an item and takes what is left.
type order int

func (o order) item() string    { return fmt.Sprintf("item%d", o%items) }
func (o order) quantity() int64 { return int64(1 + o/items%3) }
func (o order) String() string  { return fmt.Sprintf("order%d", int(o)) }

// place books an order. If the lock was lost, the order may be in the book or not: to place it again does
// no harm and settles it. If Redis did not answer the lock call, the order is not in the book yet.
func (s *shop) place(ctx context.Context, o order) (err error) {
	if s.locker == nil {
		return s.sell(ctx, o, 0)
	}
	for range 3 {
		err = s.locker.Do(ctx, s.Key("lock", o.item()), func(ctx context.Context) error {
			return s.sell(ctx, o, holdfast.LeaseFrom(ctx).Fence())
		}, holdfast.WaitAtMost(10*time.Second))
		if !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, holdfast.ErrUnknown) && !errors.Is(err, demo.ErrLate) {
			break
		}
	}
	return err
}

// sell is the critical section: read, decide, write.
func (s *shop) sell(ctx context.Context, o order, fence int64) error {
	row, err := s.Read(ctx, o.item(), fence, "stock", o.String())
	if _, booked := row[o.String()]; booked || err != nil {
		return err
	}
	if *kill && o == 1+processes*goroutines {
		demo.Die()
	}
	sold := min(o.quantity(), row["stock"])
	return s.Write(ctx, o.item(), fence, map[string]int64{"stock": row["stock"] - sold, o.String(): sold})
}

// seller is one process. It places its share of the orders.
func seller(ctx context.Context, redis *demo.Redis, number int) error {
	s := &shop{Table: demo.Table{Redis: redis}}
	if *lock {
		var err error
		if s.locker, err = rlock.New(redis, holdfast.WithLease(*lease), holdfast.WithFencing()); err != nil {
			return err
		}
		defer s.locker.Close()
	}
	g, ctx := demo.NewGroup(ctx)
	for i := range goroutines {
		g.Go(func() (err error) {
			for n := number + i*processes; n <= int(*buyers) && err == nil; n += processes * goroutines {
				err = s.place(ctx, order(n))
			}
			return err
		})
	}
	return g.Wait()
}

// sale is the parent. It fills the shop, starts the sellers and reads the books.
func sale(ctx context.Context, redis *demo.Redis) error {
	table := demo.Table{Redis: redis}
	fmt.Printf("%d processes × %d goroutines sell %d items, %d of each.\n", processes, goroutines, items, *units)
	g, running := demo.NewGroup(ctx)
	for item := range items {
		if err := table.Write(ctx, order(item).item(), 0, map[string]int64{"stock": int64(*units)}); err != nil {
			return err
		}
	}
	for i := range processes {
		g.Go(func() error {
			err := demo.Run(running, i+1)
			if *kill && errors.Is(err, demo.ErrKilled) {
				fmt.Printf("Process %d was killed while it held a lock. It starts again.\n", i+1)
				err = demo.Run(running, i+1, "-kill=false")
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	orders, wrong := 0, int64(0)
	for item := range items {
		book, err := table.Row(ctx, order(item).item())
		if err != nil {
			return fmt.Errorf("the books cannot be read: %w", err)
		}
		stock, sold := book["stock"], -book["stock"]
		for _, n := range book {
			sold += n
		}
		fmt.Printf("item %d: %d orders, %d sold, %d left\n", item, len(book)-1, sold, stock)
		orders += len(book) - 1
		wrong += max(sold+stock-int64(*units), int64(*units)-sold-stock)
	}
	if wrong > 0 || orders != int(*buyers) {
		return fmt.Errorf("WRONG: stock and books differ by %d, and %d of %d orders are in the books", wrong, orders, *buyers)
	}
	fmt.Println("All is well: every order is in the books once, and what was sold was there.")
	return nil
}

// Orders takes orders through a pipeline in a database: paid, packed, sent. Now and then a worker stands still for longer than
// its lease, and another one does its step. The database refuses what the late worker writes.
//
//	go run -C examples/orders .                                  with SQLite; needs no server
//	go run -C examples/orders . -postgres postgres://host/db     with PostgreSQL, in two tables that are dropped at the end
//	go run -C examples/orders . -fence=false                     without the fence, steps are done twice
//
// An order is locked for a step, which reads the order, calls somebody outside, and writes. Each transaction begins with
// Check: it marks the fence of the lease, and refuses one that is smaller than the last.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/sqlholdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/rlock"
)

const (
	orders, workers = 30, 4
	lease           = 300 * time.Millisecond // within which a worker has to do a step
	count           = "SELECT count(*) FROM orders_steps WHERE id = $1"
)

var (
	steps    = []string{"paid", "packed", "sent"}
	postgres = flag.String("postgres", "", "`URL` of a database of PostgreSQL; none: SQLite, in a temporary file")
	fence    = flag.Bool("fence", true, "check the fence; false shows what happens without it")
)

func main() { demo.MainOnRedis(run, nil) }

type shop struct {
	*sql.DB
	fences *sqlholdfast.Fences
	redis  *demo.Redis
	late   [orders]atomic.Bool // a worker has been late with the order
}

// worker takes all orders through the steps that are left. It has a locker of its own, as one in another process would.
func (s *shop) worker(ctx context.Context) error {
	locker, err := rlock.New(s.redis, holdfast.WithFencing())
	if err != nil {
		return err
	}
	defer locker.Close()
	for id := range orders {
		for done := 0; done < len(steps); {
			err := locker.Do(ctx, s.redis.Key(strconv.Itoa(id)), func(held context.Context) (err error) {
				done, err = s.step(held, ctx, id)
				return err
			}, holdfast.FixedLease(lease))
			switch {
			case errors.Is(err, sqlholdfast.ErrStale): // another worker has done the step: nothing was written
				fmt.Printf("Order %d: refused what a late worker wrote.\n", id)
			case errors.Is(err, holdfast.ErrLost): // the step is done or not: the next look tells
			case err != nil:
				return err
			}
		}
	}
	return nil
}

// step does the next step of an order, and returns how many were done before. ctx is bound to the lease of the order, and
// running ends with the program.
func (s *shop) step(ctx, running context.Context, id int) (done int, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error { return tx.QueryRowContext(ctx, count, id).Scan(&done) })
	if err != nil || done >= len(steps) {
		return done, err
	}
	if id%10 == 0 && done == 1 && !s.late[id].Swap(true) {
		ctx = context.WithoutCancel(ctx) // a process that stands still does not see that its ctx ends
		for now := done; now == done && err == nil; err = cmp.Or(err, demo.Sleep(running, time.Millisecond)) {
			err = s.QueryRowContext(ctx, count, id).Scan(&now)
		}
	}
	_ = demo.Sleep(ctx, time.Millisecond) // stands for a call of a bank or a carrier
	return done, s.transaction(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO orders_steps (id, step) VALUES ($1, $2)", id, steps[done])
		return err
	})
}

// transaction runs f in one. It is rolled back if the lock is lost, and refused if a later holder was here.
func (s *shop) transaction(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if *fence {
		if err := s.fences.Check(ctx, tx, holdfast.LeaseFrom(ctx)); err != nil {
			return err
		}
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func run(ctx context.Context, redis *demo.Redis) (err error) {
	dialect, driver, url := sqlholdfast.PostgreSQL, "pgx", *postgres
	if file := filepath.Join(os.TempDir(), "orders-"+redis.Run+".db"); url == "" {
		dialect, driver, url = sqlholdfast.SQLite, "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=synchronous(off)"
		defer os.Remove(file)
	}
	s := &shop{redis: redis}
	if s.DB, err = sql.Open(driver, url); err != nil {
		return err
	}
	defer s.Close()
	s.fences, _ = sqlholdfast.NewFences(dialect, "orders_fences")
	if _, err := s.ExecContext(ctx, "CREATE TABLE orders_steps (id integer, step text); "+s.fences.Schema()); err != nil {
		return err
	}
	defer s.ExecContext(context.WithoutCancel(ctx), "DROP TABLE orders_steps; DROP TABLE orders_fences")
	g, running := demo.NewGroup(ctx)
	for range workers {
		g.Go(func() error { return s.worker(running) })
	}
	total, err := 0, g.Wait()
	err = cmp.Or(err, s.QueryRow("SELECT count(*) FROM orders_steps").Scan(&total))
	if want := orders * len(steps); err != nil || total != want {
		return cmp.Or(err, fmt.Errorf("WRONG: %d orders had %d steps to do, and %d were done", orders, want, total))
	}
	fmt.Printf("%d orders are sent. Each step was done once.\n", orders)
	return nil
}

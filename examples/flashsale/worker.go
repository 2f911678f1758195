package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/redis"
	"github.com/holdfast-go/holdfast/rlock"
)

// What parent and process tell each other: one JSON value a line.
type (
	// setup is the first that a process is told.
	setup struct {
		Redis      redis.Server
		ID, Guard  string
		Lease      time.Duration
		Goroutines int
	}
	// job is an order to be placed.
	job struct {
		Index int // of the order
		Order order
		Halt  bool // inside the critical section, and wait there to be killed
	}
	// report says one thing: ready for orders, inside the critical section of a
	// job that halts, an order placed, or why the process cannot go on.
	report struct {
		Ready, Inside bool
		Index         int
		Placed        placed
		Failed        string
	}
)

// window is how many orders a process is given at a time.
func window(goroutines int) int { return 2 * goroutines }

const tries = 3 // of placing an order, if the lock was lost or Redis fails

// worker is a process that places orders.
type worker struct {
	shop *shop

	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

// work places the orders that come on in and reports on out. It ends when in
// does, giving up the waits for locks.
func work(in io.Reader, out io.Writer) int {
	signal.Ignore(os.Interrupt) // of the whole terminal: the parent decides
	w := &worker{out: json.NewEncoder(out)}
	if err := w.work(json.NewDecoder(in)); err != nil {
		w.report(report{Failed: err.Error()})
		return exitWrong
	}
	return exitOK
}

func (w *worker) work(in *json.Decoder) error {
	var s setup
	if err := in.Decode(&s); err != nil {
		return err
	}
	client, err := s.Redis.Connect()
	if err != nil {
		return err
	}
	defer client.Close()
	locker, err := rlock.New(client, rlock.WithLease(s.Lease))
	if err != nil {
		return err
	}
	defer locker.Close()

	w.shop = &shop{client: client, id: s.ID, guard: func(ctx context.Context, key string, f func(context.Context) error) error {
		return locker.Do(ctx, key, f)
	}}
	if s.Guard == guardNone {
		w.shop.guard = func(ctx context.Context, _ string, f func(context.Context) error) error { return f(ctx) }
	}
	w.report(report{Ready: true})

	// All that the parent may have given fits, so that it never waits for us.
	jobs := make(chan job, window(s.Goroutines))
	ctx, cancel := context.WithCancel(context.Background())
	var goroutines sync.WaitGroup
	for range s.Goroutines {
		goroutines.Go(func() {
			for j := range jobs {
				w.place(ctx, j)
			}
		})
	}
	var j job
	for in.Decode(&j) == nil {
		jobs <- j
	}
	cancel()
	close(jobs)
	goroutines.Wait()
	return nil
}

func (w *worker) place(ctx context.Context, j job) {
	var inside func()
	if j.Halt {
		inside = func() {
			w.report(report{Inside: true, Index: j.Index})
			<-ctx.Done()
		}
	}
	var (
		p   placed
		err error
	)
	for range tries {
		if p, err = w.shop.place(ctx, j.Order, inside); err == nil {
			w.report(report{Index: j.Index, Placed: p})
			return
		}
	}
	if ctx.Err() == nil {
		w.report(report{Failed: err.Error()})
	}
}

// report tells the parent. If there is no parent any more, the end of the input
// says so.
func (w *worker) report(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(r)
}

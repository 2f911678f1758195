package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/examples/internal/redis"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/rlock"
)

// What parent and process tell each other: one JSON value a line.
type (
	// setup is the first that a process is told.
	setup struct {
		Redis     redis.Server
		ID, Guard string
		Lease     time.Duration
	}
	// order says that a customer comes, or that the one whose turn it is may be
	// served: the parent looks on, as it may want to kill somebody first.
	order struct {
		Customer int
		Service  time.Duration
		Go       bool
	}
	// report says how far a customer is, or why the process cannot go on.
	report struct {
		Step     step
		Customer int
		Wait     time.Duration // until it was its turn
		Failed   string
	}
	step int
)

const (
	ready  step = iota + 1 // for customers
	asks                   // is about to wait for the turn
	turn                   // has the turn and waits for the order to go
	served                 // has left the counter
)

// guard runs f so that nobody else runs one for the same key.
type guard func(ctx context.Context, key string, f func(context.Context) error) error

// worker is a process to which customers come.
type worker struct {
	counter *counter
	guard   guard

	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

// work takes the customers that come on in and reports on out. It ends when in
// does, giving up the waits.
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
	w.counter = &counter{client: client, id: s.ID}
	var end func() error
	if w.guard, end, err = s.guard(client); err != nil {
		return err
	}
	defer end()
	w.report(report{Step: ready})

	ctx, cancel := context.WithCancel(context.Background())
	turns := map[int]chan struct{}{} // closed when the customer may go
	var customers sync.WaitGroup
	for {
		var o order
		if in.Decode(&o) != nil {
			break
		}
		if o.Go {
			close(turns[o.Customer])
			delete(turns, o.Customer)
			continue
		}
		may := make(chan struct{})
		turns[o.Customer] = may
		customers.Go(func() { w.take(ctx, o, may) })
	}
	cancel()
	customers.Wait()
	return nil
}

// guard returns the lock that was asked for, and what ends it.
func (s setup) guard(client rueidis.Client) (guard, func() error, error) {
	if s.Guard == guardRlock {
		l, err := rlock.New(client, rlock.WithLease(s.Lease))
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, key string, f func(context.Context) error) error { return l.Do(ctx, key, f) }, l.Close, nil
	}
	l, err := fair.New(client, fair.WithLease(s.Lease), fair.WithStale(s.Lease), fair.WithFirstLease(s.Lease))
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, key string, f func(context.Context) error) error { return l.Do(ctx, key, f) }, l.Close, nil
}

// take sees a customer through. Who fails is not sent to the queue again: it
// would be the last.
func (w *worker) take(ctx context.Context, o order, may <-chan struct{}) {
	asked := time.Now()
	w.report(report{Step: asks, Customer: o.Customer})
	err := w.guard(ctx, w.counter.lockKey(), func(ctx context.Context) error {
		w.report(report{Step: turn, Customer: o.Customer, Wait: time.Since(asked)})
		select {
		case <-may:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return w.counter.serve(ctx, o.Customer, o.Service)
	})
	switch {
	case err == nil:
		w.report(report{Step: served, Customer: o.Customer})
	case ctx.Err() == nil:
		w.report(report{Failed: fmt.Sprintf("customer %d: %v", o.Customer+1, err)})
	}
}

// report tells the parent. If there is no parent any more, the end of the input
// says so.
func (w *worker) report(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(r)
}

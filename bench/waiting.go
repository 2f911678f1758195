package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

const (
	// waitingTime is how many times longer than others this workload watches.
	waitingTime = 5
	// settleTime is after the last waiter has asked, until it surely waits.
	settleTime = 500 * time.Millisecond
	// longLease is beyond any measurement: no renewal falls into it.
	longLease = 10 * time.Minute
)

// waiting is goroutines that wait for a key that another client holds.
//
// Bytes are heap and stacks of this process, less those of as many goroutines
// that are parked in a select, and without what the first waiter needs for all
// (the connection that hears messages). Stacks come in powers of two: all these
// goroutines have used 1 KiB of theirs before, as callers have, so that those of
// 4 KiB are compared.
func waiting(waiters int) workload {
	run := func(name string) subject {
		return subject{name: name, rival: name == rueidisName, run: func(s *server, d time.Duration) (sample, error) {
			return wait(s, libraries[name], waiters, waitingTime*d)
		}}
	}
	const sent, bytes, goroutines, served = "commands/s", "bytes/waiter", "goroutines/waiter", "ms to serve all"
	return workload{
		name:     fmt.Sprintf("waiting/%d", waiters),
		subjects: []subject{run(holdfastName), run(rueidisName)},
		figures: []figure{
			{sent, exactly(0), of(holdfastName, sent)},
			{"bytes per waiter", atMost(1024), of(holdfastName, bytes)},
			{"goroutines per waiter", atMost(0.001), of(holdfastName, goroutines)},
			{served, target{}, of(holdfastName, served)},
			{"time to serve all ÷ rueidislock", atMost(0.1), ratio(holdfastName, rueidisName, served)},
			{sent + ", rueidislock", target{}, of(rueidisName, sent)},
			{"bytes per waiter, rueidislock", target{}, of(rueidisName, bytes)},
		},
	}
}

// fairWaiting is the same on the fair lock, whose client shows for each key and
// second that it lives; twice as long, so that it also names all waiters once.
func fairWaiting(waiters int) workload {
	const sent, bytes, goroutines, served = "commands/s", "bytes/waiter", "goroutines/waiter", "ms to serve all"
	return workload{
		name: fmt.Sprintf("fair/waiting %d", waiters),
		subjects: []subject{{name: fairName, run: func(s *server, d time.Duration) (sample, error) {
			return wait(s, libraries[fairName], waiters, 2*waitingTime*d)
		}}},
		figures: []figure{
			{sent, atMost(1.2), of(fairName, sent)},
			{"bytes per waiter", atMost(1024), of(fairName, bytes)},
			{"heap bytes per waiter", target{}, of(fairName, "heap bytes/waiter")},
			{"goroutines per waiter", atMost(0.001), of(fairName, goroutines)},
			{served, target{}, of(fairName, served)},
		},
	}
}

func wait(s *server, open library, waiters int, d time.Duration) (sample, error) {
	holding, err := open(s.addr, longLease)
	if err != nil {
		return nil, err
	}
	defer holding.close()
	held, err := holding.(holder).hold("hot")
	if err != nil {
		return nil, err
	}
	l, err := open(s.addr, longLease)
	if err != nil {
		return nil, err
	}
	defer l.close()

	park(2 * waiters)() // so that the runtime has the goroutines' own memory
	before := memoryNow()
	end := park(waiters)
	bare := memoryNow().since(before, waiters)
	end()

	var group sync.WaitGroup
	errs := make(chan error, waiters+1)
	ask := func(n int) {
		cycle := l.cycle("hot")
		for range n {
			group.Go(func() { deep(func() { errs <- cycle(func() {}) }) })
		}
		time.Sleep(settleTime)
	}
	ask(1)
	before = memoryNow()
	ask(waiters)
	each := memoryNow().since(before, waiters)

	sent, err := s.callsDuring(func() error {
		time.Sleep(d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	released := time.Now()
	if err := held.Unlock(always); err != nil {
		return nil, err
	}
	if err := finish(0, &group); err != nil {
		return nil, err
	}
	served := time.Since(released)
	for range waiters + 1 {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	return sample{
		"commands/s":         float64(sent.sent()) / d.Seconds(),
		"bytes/waiter":       each.heap + each.stack - bare.heap - bare.stack,
		"heap bytes/waiter":  each.heap - bare.heap,
		"stack bytes/waiter": each.stack - bare.stack,
		"goroutines/waiter":  each.goroutines - bare.goroutines,
		"ms to serve all":    ms(served),
	}, nil
}

// park starts n goroutines that wait for nothing, and returns what ends them.
func park(n int) (end func()) {
	var group sync.WaitGroup
	over, never := make(chan struct{}), make(chan struct{})
	for range n {
		group.Go(func() {
			deep(func() {
				select {
				case <-never:
				case <-over:
				}
			})
		})
	}
	time.Sleep(settleTime)
	return func() {
		close(over)
		group.Wait()
	}
}

// deep calls f from a stack of which 1 KiB is used.
//
//go:noinline
func deep(f func()) {
	var used [1 << 10]byte
	f()
	runtime.KeepAlive(&used)
}

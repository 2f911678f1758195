package main

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// waitingTime is how many times longer than others this workload watches.
	waitingTime = 5
	// settleTime is after the last waiter has asked, until it surely waits.
	settleTime = 500 * time.Millisecond
	// longLease is beyond any measurement: no renewal falls into it.
	longLease = 10 * time.Minute
)

// waiting is goroutines that wait for a key that another client of their process
// holds.
//
// Bytes are heap and stacks of this process, less those of as many goroutines
// that are parked in a select, and without what the first waiter needs for all
// (the connection that hears messages). Stacks come in powers of two: all these
// goroutines have used 1 KiB of theirs before, as callers have, so that those of
// 4 KiB are compared. Of Java it is the heap alone, less that of parked threads.
func waiting(waiters int) workload {
	names := []string{rueidisName, redsyncName, redislockName, redissonName}
	if waiters <= fewWaiters {
		names = rivals()
	}
	const goroutines = "goroutines/waiter"
	w := workload{
		name:  fmt.Sprintf("waiting/%d", waiters),
		spans: waitingTime,
		figures: []figure{
			{waitSent, exactly(0), of(holdfastName, waitSent)},
			{"bytes per waiter", atMost(1024), of(holdfastName, waitBytes)},
			{"goroutines per waiter", atMost(0.001), of(holdfastName, goroutines)},
			{waitServed, target{}, of(holdfastName, waitServed)},
			{"time to serve all ÷ best rival", atMost(0.1), besideLeast(holdfastName, waitServed)},
		},
	}
	for _, name := range append([]string{holdfastName}, names...) {
		w.subjects = append(w.subjects, waitingSubject(name, waiters, waitingTime))
	}
	for _, name := range names {
		w.figures = append(w.figures, waitingFigures(name)...)
	}
	return w
}

// fewWaiters is how many all rivals are made to serve; RIVALS.md tells who is left
// out where there are more, and why.
const fewWaiters = 1000

const (
	waitSent, waitBytes, waitServed = "commands/s", "bytes/waiter", "ms to serve all"
	waitLeft                        = "not served"
)

// serveTime is how long it may take until each has had the key.
func serveTime(waiters int) time.Duration {
	return patience + time.Duration(waiters)*time.Millisecond
}

// waitingFigures are what can be known of a rival.
func waitingFigures(name string) (all []figure) {
	if _, apart := starters[name]; !apart {
		all = append(all, figure{waitSent + ", " + name, target{}, of(name, waitSent)})
	}
	bytes := waitBytes
	if _, java := redissonLocks[name]; java {
		bytes = "heap bytes/waiter"
	}
	return append(all,
		figure{"bytes per waiter, " + name, target{}, of(name, bytes)},
		figure{waitServed + ", " + name, target{}, of(name, waitServed)})
}

func waitingSubject(name string, waiters, times int) subject {
	return subject{name: name, rival: isRival(name), needs: needs(name), run: func(s *server, d time.Duration) (sample, error) {
		return wait(s, name, waiters, time.Duration(times)*d)
	}}
}

// fairWaiting is the same on the fair lock, whose client shows for each key and
// second that it lives; twice as long, so that it also names all waiters once.
func fairWaiting(waiters int) workload {
	return workload{
		name:  fmt.Sprintf("fair/waiting %d", waiters),
		spans: 2 * waitingTime,
		subjects: []subject{
			waitingSubject(fairName, waiters, 2*waitingTime),
			waitingSubject(redissonFairName, waiters, 2*waitingTime),
		},
		figures: append([]figure{
			{waitSent, atMost(1.2), of(fairName, waitSent)},
			{"bytes per waiter", atMost(1024), of(fairName, waitBytes)},
			{"heap bytes per waiter", target{}, of(fairName, "heap bytes/waiter")},
			{"goroutines per waiter", atMost(0.001), of(fairName, "goroutines/waiter")},
			{waitServed, target{}, of(fairName, waitServed)},
		}, waitingFigures(redissonFairName)...),
	}
}

// wait measures what the waiters of one process cost for d, and how long it takes
// until each has had the key.
func wait(s *server, name string, waiters int, d time.Duration) (sample, error) {
	st, err := storeOf(name, s)
	if err != nil {
		return nil, err
	}
	var sent calls
	task := childTask{
		Addr: st.address(), Library: name, Role: waitRole, Count: waiters, Hot: true,
		Lease: longLease, Duration: serveTime(waiters),
	}
	_, apart := starters[name]
	if _, java := redissonLocks[name]; java || apart {
		task.Lease = 0 // they have no commands to count, or a holder that asks for such a lease by itself
	}
	r, store, err := alone(st, task, func() (err error) {
		sent, err = st.callsDuring(func() error {
			time.Sleep(d)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if sent != nil {
		r.Figures[waitSent] = float64(sent.sentBy(name)) / d.Seconds()
	}
	if left := r.Figures[waitLeft]; left > 0 {
		return r.Figures, fmt.Errorf("%w: %.0f of %d waiters had not had the key %v after its release", errIncomplete, left, waiters, serveTime(waiters))
	}
	t, err := totalOf(r)
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Figures, t.costs(store, name))
	r.Figures["cycles/s"] = t.all / r.Figures[waitServed] * 1e3
	return r.Figures, nil
}

// waitJob is waiters that wait.
type waitJob struct {
	holding, locker locker
	held            lease
	waiters         int
	limit           time.Duration
	each, bare      added
	errs            chan error // of each cycle
	group           *sync.WaitGroup

	mu       sync.Mutex
	released time.Time               // guarded by mu
	waits    *hdrhistogram.Histogram // ns from released to having the key; guarded by mu
}

func (c childTask) prepareWait() (_ job, err error) {
	j := &waitJob{
		waiters: c.Count, limit: c.Duration, waits: newWaits(),
		errs: make(chan error, c.Count+1), group: new(sync.WaitGroup),
	}
	defer func() {
		if err != nil {
			j.close()
		}
	}()
	open := libraries[c.Library]
	if j.holding, err = open(c.Addr, c.lease()); err != nil {
		return nil, err
	}
	if j.held, err = j.holding.(holder).hold("hot"); err != nil {
		return nil, err
	}
	if j.locker, err = open(c.Addr, c.lease()); err != nil {
		return nil, err
	}
	park(2 * c.Count)() // so that the runtime has the goroutines' own memory
	before := memoryNow()
	end := park(c.Count)
	j.bare = memoryNow().since(before, c.Count)
	end()

	j.ask(1, c.Library)
	before = memoryNow()
	j.ask(c.Count, c.Library)
	j.each = memoryNow().since(before, c.Count)
	return j, nil
}

// ask returns when so many more surely wait.
func (j *waitJob) ask(n int, library string) {
	_, apart := starters[library] // their locks are of one goroutine each
	cycle, served := j.locker.cycle("hot"), j.served
	for i := range n {
		if apart && i > 0 {
			cycle = j.locker.cycle("hot")
		}
		cycle := cycle
		j.group.Go(func() { deep(func() { j.errs <- cycle(served) }) })
	}
	time.Sleep(settleTime)
	if apart {
		time.Sleep(time.Duration(n) * 2 * time.Millisecond)
	}
}

// served is what each does who has the key.
func (j *waitJob) served() {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.waits.RecordValue(time.Since(j.released).Nanoseconds()) // nothing lasts longer than patience
}

// work unlocks the key.
func (j *waitJob) work() (r childResult, err error) {
	objects, bytes := allocated()
	j.mu.Lock()
	j.released = time.Now()
	j.mu.Unlock()
	if err := j.held.Unlock(always); err != nil {
		return r, err
	}
	unserved := finish(j.limit-patience, j.group)
	took := time.Since(j.released)
	r.Objects, r.Bytes = allocated()
	r.Objects, r.Bytes = r.Objects-objects, r.Bytes-bytes
	r.All, r.Allocated = j.waiters+1, j.waiters+1
	r.Figures = sample{
		waitBytes:            j.each.heap - j.bare.heap + max(j.each.stack-j.bare.stack, 0), // less is how the runtime keeps stacks
		"heap bytes/waiter":  j.each.heap - j.bare.heap,
		"stack bytes/waiter": j.each.stack - j.bare.stack,
		"goroutines/waiter":  j.each.goroutines - j.bare.goroutines,
	}
	if unserved != nil {
		r.Figures[waitLeft] = float64(j.waiters + 1 - len(j.errs))
		return r, nil
	}
	r.Figures[waitServed] = ms(took)
	r.Waits, err = encoded(j.waits)
	return r, errors.Join(err, errors.Join(drain(j.errs)...))
}

func (j *waitJob) close() {
	for _, l := range []locker{j.locker, j.holding} {
		if l != nil {
			l.close()
		}
	}
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

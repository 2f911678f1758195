package main

import (
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
)

const (
	// settleTime is the time after which one that has asked certainly waits.
	settleTime = 500 * time.Millisecond
	// longLease is beyond any measurement: no renewal falls into it.
	longLease = 10 * time.Minute
	waitLeft  = "not served"
)

// waiting is goroutines that wait for a key that another client of their process holds. It
// measures what they cost for some times d, and how long it takes until each has had the key.
//
// Bytes are heap and stacks of the process, less those of as many goroutines that are parked
// in a select, and without what the first waiter needs for all (the connection that hears
// messages). Stacks come in powers of two. All these goroutines have used 1 KiB of theirs
// before, as callers have, so that stacks of 4 KiB are compared. Of Java it is the heap alone,
// less that of parked threads.
func waiting(name string, waiters, times int, names ...string) workload {
	return workload{name, each(names, nil, func(st store, library string, d time.Duration) (report.Sample, error) {
		d *= time.Duration(times)
		t := task{
			Role: "wait", Library: library, Count: waiters, Hot: true,
			Lease: longLease, Duration: patience + time.Duration(waiters)*time.Millisecond,
		}
		if l := libraries[library]; l.java != "" || l.server != nil {
			t.Lease = 0 // they have no commands to count, or a holder that asks for such a lease itself
		}
		workers := fleet{1}.start(st, t)
		defer workers.end()
		before := st.during(func() { time.Sleep(d) })
		results, did := workers.observed(st)
		got := results[0].Figures
		if before.calls != nil {
			got["commands/s"] = float64(before.sent(library)) / d.Seconds()
		}
		if left := got[waitLeft]; left > 0 {
			return got, fmt.Errorf("%w: %.0f of %d waiters had not had the key %v after its release", errIncomplete, left, waiters, t.Duration)
		}
		maps.Copy(got, costs(results, waitsOf(results), did, library))
		got["cycles/s"] = float64(results[0].All) / got["ms to serve all"] * 1e3
		return got, nil
	})}
}

// waitJob is waiters that wait.
type waitJob struct {
	task
	unlock     func() error
	each, bare memory     // what one waiter has added, and what a parked goroutine has
	errs       chan error // of each cycle
	group      sync.WaitGroup

	mu       sync.Mutex
	released time.Time // guarded by mu
	waits    *waits    // from released to having the key; guarded by mu
}

func prepareWait(t task) job {
	j := &waitJob{task: t, waits: newWaits(), errs: make(chan error, t.Count+1), unlock: hold(t.open(), hotKey)}
	locker := t.open()
	settle := settleTime
	if libraries[t.Library].server != nil {
		settle += time.Duration(t.Count) * 2 * time.Millisecond // each waiter is a write there
	}
	j.park(2 * t.Count)() // so that the runtime has the goroutines' own memory
	before := memoryNow()
	end := j.park(t.Count)
	j.bare = memoryNow().since(before, t.Count)
	end()

	cycles := make([]func(func()) error, t.Count+1)
	for i := range cycles {
		cycles[i] = locker.cycle(hotKey)
	}
	j.ask(cycles[:1], settle)
	before = memoryNow()
	j.ask(cycles[1:], settle)
	j.each = memoryNow().since(before, t.Count)
	runtime.KeepAlive(cycles)
	return j.work
}

// ask returns when the cycles certainly wait.
func (j *waitJob) ask(cycles []func(func()) error, settle time.Duration) {
	served := j.served
	for _, cycle := range cycles {
		j.group.Go(func() { deep(func() { j.errs <- cycle(served) }) })
	}
	time.Sleep(settle)
}

// served is the section of each waiter.
func (j *waitJob) served() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waits.add(time.Since(j.released))
}

// work unlocks the key.
func (j *waitJob) work(float64) (r result) {
	before := allocatedSince(allocations{})
	j.mu.Lock()
	j.released = time.Now()
	j.mu.Unlock()
	check(j.unlock())
	unserved := finish(j.Duration-patience, &j.group)
	took := time.Since(j.released)
	r.allocations, r.All, r.Allocated = allocatedSince(before), j.Count+1, j.Count+1
	r.Figures = report.Sample{
		"bytes/waiter":       j.each.heap - j.bare.heap + max(j.each.stacks-j.bare.stacks, 0), // below 0, only the runtime's caches differ
		"heap bytes/waiter":  j.each.heap - j.bare.heap,
		"stack bytes/waiter": j.each.stacks - j.bare.stacks,
		"goroutines/waiter":  j.each.goroutines - j.bare.goroutines,
	}
	if unserved != nil {
		r.Figures[waitLeft] = float64(j.Count + 1 - len(j.errs))
		return r
	}
	r.Figures["ms to serve all"] = ms(took)
	r.Waits = j.waits
	close(j.errs)
	for err := range j.errs {
		check(err)
	}
	return r
}

// park starts n goroutines that do nothing until end.
func (j *waitJob) park(n int) (end func()) {
	over, never := make(chan struct{}), make(chan struct{})
	for range n {
		j.group.Go(func() {
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
		j.group.Wait()
	}
}

// deep calls f with 1 KiB of the stack in use.
//
//go:noinline
func deep(f func()) {
	var used [1 << 10]byte
	f()
	runtime.KeepAlive(&used)
}

// memory is what this process uses, or a share of it.
type memory struct {
	heap       float64 // bytes of living objects, after a collection
	stacks     float64 // bytes of stacks
	goroutines float64
}

func memoryNow() memory {
	runtime.GC() // twice: what a sync.Pool keeps survives one
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{float64(m.HeapAlloc), float64(m.StackInuse), float64(runtime.NumGoroutine())}
}

// since returns what each of n has added.
func (m memory) since(before memory, n int) memory {
	each := float64(n)
	return memory{(m.heap - before.heap) / each, (m.stacks - before.stacks) / each, (m.goroutines - before.goroutines) / each}
}

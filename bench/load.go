package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	hotKey = "hot"   // wanted by all
	tried  = "tried" // held by another client, and tried by all

	// patience is how much longer than planned something may take.
	patience = 30 * time.Second
)

var (
	errBroken     = errors.New("exclusion is broken: sections overlapped")
	errNotRefused = errors.New("exclusion is broken: a key that is held was given to another")
	errStuck      = fmt.Errorf("some still waited %v after the end", patience)
)

// load is goroutines that lock and unlock without a pause.
type load struct {
	task
	gaps   bool          // hot: measure the longest time without a section
	blind  bool          // keep no waits: reading the clock costs as much as a handover in memory
	inside *atomic.Int64 // hot and not blind: counts the sections that have begun and not ended, by their shares; nil: only those of this process
}

// tally is what a load did.
type tally struct {
	result
	led  int           // cycles whose section began in the lead
	held time.Duration // sum of the sections in time
}

// allocations are what this process has allocated.
type allocations struct{ Objects, Bytes uint64 }

func allocatedSince(before allocations) allocations {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return allocations{m.Mallocs - before.Objects, m.TotalAlloc - before.Bytes}
}

// run puts the load on l for d, after its lead. The cycles that are still under way end with
// an empty section.
func (w load) run(l locker, d time.Duration) (tally, error) {
	r := &loadRun{load: w, begin: make(chan struct{}), total: tally{result: result{Waits: newWaits()}}}
	if r.inside == nil {
		r.inside = new(atomic.Int64)
	}
	var group sync.WaitGroup
	for i := range w.Goroutines {
		alone := refused(l)
		if !w.Try {
			alone = l.cycle(w.key(i))
		}
		shared := alone
		if o, ok := l.(*ours); ok && w.Shared > 0 {
			shared = cycleOf(o.readers, w.key(i))
		}
		mine := &tally{result: result{Waits: newWaits()}}
		group.Go(func() { r.worker(alone, shared, mine) })
	}
	r.last = time.Now()
	close(r.begin)
	time.Sleep(w.Lead)
	before := allocatedSince(allocations{})
	started := time.Now()
	r.counts.Store(true)
	stop := time.AfterFunc(d, func() {
		r.over.Store(true)
		if r, ok := l.(*ring); ok {
			r.over()
		}
	})
	defer stop.Stop()
	if err := finish(d+time.Duration(w.Goroutines)*time.Millisecond, &group); err != nil {
		return tally{}, err
	}
	r.total.allocations = allocatedSince(before)
	if w.gaps {
		r.total.Gap = max(r.gap, started.Add(d).Sub(r.last))
	}
	if w.Hot && w.blind && r.count != r.total.All {
		r.fail(errBroken)
	}
	return r.total, r.failure
}

// refused returns a cycle that is a try, which must be refused.
func refused(l locker) func(func()) error {
	return func(inside func()) error {
		got, err := l.(trier).try(tried)
		if got {
			return errNotRefused
		}
		inside()
		return err
	}
}

// finish waits for a group that should be done after d. If it is not, as after a lost
// wake-up, it leaves the goroutines behind.
func finish(d time.Duration, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(d + patience):
		return errStuck
	}
}

// loadRun is one run of a load.
type loadRun struct {
	load   // immutable, except for what inside counts
	begin  chan struct{}
	counts atomic.Bool // the lead is over
	over   atomic.Bool

	mu      sync.Mutex
	total   tally // guarded by mu
	failure error // the first; guarded by mu

	// Guarded by nothing but the lock that is measured, if the load is hot.
	count int           // sections of a blind load; it is too small if some overlap
	last  time.Time     // end of the last section
	gap   time.Duration // longest time without one
}

// fail ends the run. The first error counts.
func (r *loadRun) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = err
	}
	r.over.Store(true)
}

// worker is one goroutine of the load, with its own tally.
func (r *loadRun) worker(alone, shared func(func()) error, mine *tally) {
	var asked time.Time
	var share int64
	section := func() { r.section(mine, asked, share) }
	<-r.begin
	for !r.over.Load() {
		cycle := alone
		share = r.room()
		if r.Shared > 0 && rand.IntN(100) < r.Shared {
			cycle, share = shared, 1
		}
		if !r.blind {
			asked = time.Now()
		}
		if err := cycle(section); err != nil {
			r.fail(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Cycles += mine.Cycles
	r.total.led += mine.led
	r.total.All += mine.All
	r.total.Shares = append(r.total.Shares, mine.Cycles)
	r.total.Waits.Merge(mine.Waits.Histogram)
	r.total.held += mine.held
}

// section is what runs under the lock. It takes a share of the room inside.
func (r *loadRun) section(mine *tally, asked time.Time, share int64) {
	mine.All++
	switch {
	case !r.Hot:
	case r.blind:
		r.count++
	default:
		if r.inside.Add(share) > r.room() {
			r.fail(errBroken)
		}
		defer r.inside.Add(-share)
	}
	var had time.Time
	counts := r.counts.Load()
	if !r.blind {
		had = time.Now()
		if counts { // also for those that still wait at the end: the longest waits are among them
			mine.Waits.add(had.Sub(asked))
		}
	}
	if r.over.Load() {
		return
	}
	end := had
	if r.Section >= time.Millisecond {
		time.Sleep(r.Section)
		end = time.Now()
	}
	for end.Sub(had) < r.Section { // it spins in a short one, to be exact
		end = time.Now()
	}
	if counts {
		mine.Cycles++
		mine.held += end.Sub(had)
	} else {
		mine.led++
	}
	if r.gaps {
		if counts {
			r.gap = max(r.gap, had.Sub(r.last))
		}
		r.last = end
	}
}

func prepareLoad(t task) job {
	w := load{task: t, gaps: t.Hot && t.Processes > 1 && t.Shared == 0}
	if t.Inside != "" {
		w.inside = mapCount(t.Inside)
	}
	if t.Try {
		hold(t.open(), tried)
	}
	l := t.openWarm()
	if _, once := l.(*ring); t.Warm > 0 && !once {
		must(w.run(l, t.Warm)) // opens all connections
	}
	return func(float64) result { return w.measure(l) }
}

// measure works for the task's time. Where a handover may be quicker than a look at the
// clock, as with one key and empty sections in one process, a second, shorter run gives the
// waits.
func (w load) measure(l locker) result {
	w.blind = w.Hot && w.Section == 0 && !w.gaps && w.Shared == 0
	t := must(w.run(l, w.Duration))
	t.Allocated, t.Section = t.All-t.led, t.held/time.Duration(max(t.Cycles, 1))
	if _, once := l.(*ring); w.blind && !once { // of one that runs once, the waits stay unknown
		w.blind = false
		timed := must(w.run(l, w.Duration/2))
		t.All, t.Waits = t.All+timed.All, timed.Waits
	}
	return t.result
}

// insideSize is the size of a number that processes share, in bytes.
const insideSize = 8

// insideFile makes a file in which processes count the sections that have begun and not ended.
func insideFile() (path string) {
	f := must(os.CreateTemp(must(filesDir()), "inside-"))
	check(errors.Join(f.Truncate(insideSize), f.Close()))
	return f.Name()
}

// mapCount maps the number in a file, which processes share until they end.
func mapCount(path string) *atomic.Int64 {
	f := must(os.OpenFile(path, os.O_RDWR, 0))
	mapped, err := syscall.Mmap(int(f.Fd()), 0, insideSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(errors.Join(err, f.Close()))
	return (*atomic.Int64)(unsafe.Pointer(&mapped[0])) // a mapping begins with a page, so it is aligned
}

// inParallel calls f for each of n items, some at a time, until a call fails.
func inParallel(atOnce, n int, f func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, atOnce)
	for w := range atOnce {
		group.Go(func() {
			for i := w; i < n && errs[w] == nil; i += atOnce {
				errs[w] = f(i)
			}
		})
	}
	if err := finish(time.Duration(n)*time.Millisecond, &group); err != nil {
		return err
	}
	return errors.Join(errs...)
}

package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// load is goroutines that lock and unlock without a pause.
type load struct {
	goroutines int
	hot        bool          // all lock one key; else each has its own
	section    time.Duration // 0: empty
	gaps       bool          // hot: measure the longest time without a section
}

// key is what goroutine i locks.
func (w load) key(i int) string {
	if w.hot {
		return "hot"
	}
	return fmt.Sprintf("own:%d", i)
}

// work passes the time of a section: short ones exactly, by spinning.
func (w load) work() {
	if w.section >= time.Millisecond {
		time.Sleep(w.section)
		return
	}
	for begin := time.Now(); time.Since(begin) < w.section; {
	}
}

// tally is what a load did.
type tally struct {
	cycles int             // whose section began in time
	all    int             // with those that were under way at the end
	waits  []time.Duration // from asking to having the lock; not kept of empty sections
	held   time.Duration   // sum of the sections; not kept of empty ones
	gap    time.Duration   // longest time without a section
}

// meanSection is how long a section took.
func (t tally) meanSection() time.Duration { return t.held / time.Duration(max(t.cycles, 1)) }

var errBroken = errors.New("exclusion is broken: sections overlapped")

// run puts the load on l for d. The cycles that are under way then end with an
// empty section.
func (w load) run(l locker, d time.Duration) (tally, error) {
	r := &loadRun{load: w, begin: make(chan struct{})}
	var group sync.WaitGroup
	for i := range w.goroutines {
		cycle := l.cycle(w.key(i))
		group.Go(func() { r.worker(cycle) })
	}
	started := time.Now()
	r.last = started
	close(r.begin)
	stop := time.AfterFunc(d, func() {
		r.over.Store(true)
		if e, ok := l.(ender); ok {
			e.over()
		}
	})
	defer stop.Stop()
	if err := finish(d, &group); err != nil {
		return tally{}, err
	}
	if w.gaps {
		r.total.gap = max(r.gap, started.Add(d).Sub(r.last))
	}
	if w.hot && r.count != r.total.all {
		r.fail(errBroken)
	}
	return r.total, r.failure
}

// patience is how much longer than planned something may take.
const patience = 20 * time.Second

var errStuck = fmt.Errorf("some still waited %v after the end", patience)

// finish waits for a group that should be done after d. If it never is, as with
// a lost wake-up, its goroutines are left behind.
func finish(d time.Duration, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	limit := time.NewTimer(d + patience)
	defer limit.Stop()
	select {
	case <-done:
		return nil
	case <-limit.C:
		return errStuck
	}
}

// loadRun is one run of a load.
type loadRun struct {
	load  // immutable
	begin chan struct{}
	over  atomic.Bool

	mu      sync.Mutex
	total   tally // guarded by mu
	failure error // the first; guarded by mu

	// Guarded by nothing but the lock that is measured, if it is hot.
	count int           // sections
	last  time.Time     // end of the last section
	gap   time.Duration // longest time without one
}

// fail ends the run; its first error counts.
func (r *loadRun) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = err
	}
	r.over.Store(true)
}

// worker is one goroutine of the load.
func (r *loadRun) worker(cycle func(func()) error) {
	var mine tally
	var asked time.Time
	section := func() { r.section(&mine, asked) }
	<-r.begin
	for !r.over.Load() {
		if r.load.section > 0 {
			asked = time.Now()
		}
		if err := cycle(section); err != nil {
			r.fail(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.cycles += mine.cycles
	r.total.all += mine.all
	r.total.waits = append(r.total.waits, mine.waits...)
	r.total.held += mine.held
}

// section is what runs under the lock.
func (r *loadRun) section(mine *tally, asked time.Time) {
	mine.all++
	if r.hot {
		r.count++
	}
	if r.over.Load() {
		return
	}
	mine.cycles++
	if r.gaps {
		now := time.Now()
		r.gap, r.last = max(r.gap, now.Sub(r.last)), now
	}
	if r.load.section == 0 {
		return
	}
	had := time.Now()
	mine.waits = append(mine.waits, had.Sub(asked))
	r.work()
	end := time.Now()
	mine.held += end.Sub(had)
	if r.gaps {
		r.last = end
	}
}

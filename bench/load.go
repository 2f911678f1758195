package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// load is goroutines that lock and unlock without a pause.
type load struct {
	goroutines int
	hot        bool          // all lock one key; else each has its own
	try        bool          // all only try one key, which is held
	section    time.Duration // 0: empty
	lead       time.Duration // for how long before what is measured
	gaps       bool          // hot: measure the longest time without a section
	blind      bool          // keep no waits: reading the clock costs as much as a hand-over in memory
	inside     *atomic.Int64 // hot and not blind: where those with a section are counted; nil is within this process
}

// key is what goroutine i locks.
func (w load) key(i int) string {
	switch {
	case w.hot:
		return "hot"
	case w.try:
		return tried
	}
	return fmt.Sprintf("own:%d", i)
}

// pass lets the time of a section go by, that of a short one exactly, by spinning.
func (w load) pass() {
	if w.section >= time.Millisecond {
		time.Sleep(w.section)
		return
	}
	for begin := time.Now(); time.Since(begin) < w.section; {
	}
}

// tally is what a load did.
type tally struct {
	cycles  int                     // whose section began in time
	led     int                     // before what is measured
	all     int                     // with both and those that were under way at the end
	shares  []int                   // cycles of each goroutine
	waits   *hdrhistogram.Histogram // ns from asking to having the lock
	held    time.Duration           // sum of the sections in time; not kept of empty ones
	gap     time.Duration           // longest time without a section
	objects uint64                  // allocated meanwhile, of all cycles but those that led
	bytes   uint64                  // likewise
}

// newWaits is a histogram of ns, from a tenth of a µs to ten minutes, within 1 %.
func newWaits() *hdrhistogram.Histogram {
	return hdrhistogram.New(100, (10 * time.Minute).Nanoseconds(), 2)
}

// meanSection is how long a section took.
func (t tally) meanSection() time.Duration { return t.held / time.Duration(max(t.cycles, 1)) }

var errBroken = errors.New("exclusion is broken: sections overlapped")

// run puts the load on l for d, after its lead. The cycles that are under way then
// end with an empty section.
func (w load) run(l locker, d time.Duration) (tally, error) {
	r := &loadRun{load: w, begin: make(chan struct{}), total: tally{waits: newWaits()}}
	if r.inside == nil {
		r.inside = new(atomic.Int64)
	}
	var group sync.WaitGroup
	for i := range w.goroutines {
		cycle := l.cycle(w.key(i))
		mine := &tally{waits: newWaits()}
		group.Go(func() { r.worker(cycle, mine) })
	}
	r.last = time.Now()
	close(r.begin)
	time.Sleep(w.lead)
	objects, bytes := allocated()
	started := time.Now()
	r.counts.Store(true)
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
	r.total.objects, r.total.bytes = allocated()
	r.total.objects, r.total.bytes = r.total.objects-objects, r.total.bytes-bytes
	if w.gaps {
		r.total.gap = max(r.gap, started.Add(d).Sub(r.last))
	}
	if w.hot && w.blind && r.count != r.total.all {
		r.fail(errBroken)
	}
	return r.total, r.failure
}

// patience is how much longer than planned something may take.
const patience = 10 * time.Second

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
	load   // immutable, but for the count of those inside
	begin  chan struct{}
	counts atomic.Bool // what is measured has begun
	over   atomic.Bool

	mu      sync.Mutex
	total   tally // guarded by mu
	failure error // the first; guarded by mu

	// Guarded by nothing but the lock that is measured, if it is hot.
	count int           // sections of a blind load; those that overlap are lost in it
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

// worker is one goroutine of the load, with its own tally.
func (r *loadRun) worker(cycle func(func()) error, mine *tally) {
	var asked time.Time
	section := func() { r.section(mine, asked) }
	<-r.begin
	for !r.over.Load() {
		if !r.blind {
			asked = time.Now()
		}
		if err := cycle(section); err != nil {
			r.fail(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.cycles += mine.cycles
	r.total.led += mine.led
	r.total.all += mine.all
	r.total.shares = append(r.total.shares, mine.cycles)
	r.total.waits.Merge(mine.waits)
	r.total.held += mine.held
}

// section is what runs under the lock.
func (r *loadRun) section(mine *tally, asked time.Time) {
	mine.all++
	switch {
	case !r.hot:
	case r.blind:
		r.count++
	default:
		if r.inside.Add(1) != 1 {
			r.fail(errBroken)
		}
		defer r.inside.Add(-1)
	}
	var had time.Time
	counts := r.counts.Load()
	if !r.blind {
		had = time.Now()
		if counts { // those that still wait at the end, too: the longest waits are among them
			_ = mine.waits.RecordValue(had.Sub(asked).Nanoseconds()) // nothing lasts longer than patience
		}
	}
	if r.over.Load() {
		return
	}
	if counts {
		mine.cycles++
	} else {
		mine.led++
	}
	if r.blind {
		return
	}
	if r.gaps {
		if counts {
			r.gap = max(r.gap, had.Sub(r.last))
		}
		r.last = had
	}
	if r.load.section == 0 {
		return
	}
	r.pass()
	end := time.Now()
	if counts {
		mine.held += end.Sub(had)
	}
	if r.gaps {
		r.last = end
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	hotKey = "hot"   // is wanted by all
	tried  = "tried" // is asked for and always refused
	warmed = "warm"  // is locked once, before anything is measured

	// patience is how much longer than planned something may take.
	patience = 10 * time.Second
)

var (
	errBroken     = errors.New("exclusion is broken: sections overlapped")
	errNotRefused = errors.New("exclusion is broken: a key that is held was given to another")
	errStuck      = fmt.Errorf("some still waited %v after the end", patience)
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
		return hotKey
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
	cycles int                     // whose section began in time
	led    int                     // before what is measured
	all    int                     // with both and those that were under way at the end
	shares []int                   // cycles of each goroutine
	waits  *hdrhistogram.Histogram // ns from asking to having the lock
	held   time.Duration           // sum of the sections in time; not kept of empty ones
	gap    time.Duration           // longest time without a section
	allocs allocations             // meanwhile, of all cycles but those that led
}

// allocations are what this process has allocated.
type allocations struct{ objects, bytes uint64 }

func allocatedSince(before allocations) allocations {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return allocations{m.Mallocs - before.objects, m.TotalAlloc - before.bytes}
}

// run puts the load on l for d, after its lead. The cycles that are under way then end with
// an empty section.
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
	before := allocatedSince(allocations{})
	started := time.Now()
	r.counts.Store(true)
	stop := time.AfterFunc(d, func() {
		r.over.Store(true)
		if e, ok := l.(ender); ok {
			e.over()
		}
	})
	defer stop.Stop()
	if err := finish(d+time.Duration(w.goroutines)*time.Millisecond, &group); err != nil {
		return tally{}, err
	}
	r.total.allocs = allocatedSince(before)
	if w.gaps {
		r.total.gap = max(r.gap, started.Add(d).Sub(r.last))
	}
	if w.hot && w.blind && r.count != r.total.all {
		r.fail(errBroken)
	}
	return r.total, r.failure
}

// finish waits for a group that should be done after d. If it never is, as with a lost
// wake-up, its goroutines are left behind.
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
		if counts { // those that still wait at the end as well: the longest waits are among them
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

// loadJob is a load that has warmed up.
type loadJob struct {
	locker
	load load
	time time.Duration
}

func prepareLoad(t task) (job, error) {
	w := load{
		goroutines: t.Goroutines, hot: t.Hot, try: t.Try, section: t.Section, lead: t.Lead,
		gaps: t.Hot && t.Processes > 1,
	}
	if t.Inside != "" {
		var err error
		if w.inside, err = mapCount(t.Inside); err != nil {
			return nil, err
		}
	}
	open := libraries[t.Library].open
	if t.Try {
		open = openRefusals
	}
	l, err := open(t)
	if err != nil {
		return nil, err
	}
	if _, once := l.(ender); t.Warm > 0 && !once { // it opens the connections and teaches Redis the scripts
		_, err = w.run(l, t.Warm)
	} else {
		err = l.cycle(fmt.Sprintf("%s:%d", warmed, os.Getpid()))(func() {})
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return loadJob{l, w, t.Duration}, nil
}

// work measures. Where a hand-over may be quicker than a look at the clock, as with one key
// and empty sections in one process, the waits come from a second, shorter run.
func (j loadJob) work(float64) (r result, err error) {
	w := j.load
	w.blind = w.hot && w.section == 0 && !w.gaps
	_, once := j.locker.(ender) // its waits are not known then
	t, err := w.run(j.locker, j.time)
	if err != nil {
		return r, err
	}
	var timed tally
	waits := t.waits
	if w.blind && !once {
		w.blind = false
		if timed, err = w.run(j.locker, j.time/2); err != nil {
			return r, err
		}
		waits = timed.waits
	}
	told, err := encoded(waits)
	return result{
		Cycles: t.cycles, All: t.all + timed.all, Shares: t.shares, Gap: t.gap, Section: t.held / time.Duration(max(t.cycles, 1)),
		Waits: told, Allocated: t.all - t.led, Objects: t.allocs.objects, Bytes: t.allocs.bytes,
	}, err
}

// insideSize is the bytes of a number that processes share.
const insideSize = 8

// insideFile makes a file in which processes count who is inside: one at a time. It may be
// removed when all of them have mapped it.
func insideFile() (path string, remove func(), err error) {
	dir, err := memoryDir()
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "inside")
	remove = func() { _ = os.RemoveAll(dir) } // a few bytes, which the system tidies up
	if err := os.WriteFile(path, make([]byte, insideSize), 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// inParallel calls f for each of n items, some at a time, until one fails.
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

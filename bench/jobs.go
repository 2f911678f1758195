package main

import (
	"fmt"
	"os"
	"sync/atomic"
)

// job is a process' work, ready to begin.
type job interface {
	work() (childResult, error)
	close()
}

// prepare makes everything that is to be there before the work is measured.
func (c childTask) prepare() (job, error) {
	switch c.Role {
	case loadRole:
		return c.prepareLoad()
	case waitRole:
		return c.prepareWait()
	case keepRole:
		return c.prepareKeep()
	case saleRole:
		return c.prepareSale()
	case holdRole:
		return c.prepareHold()
	case askRole:
		return c.prepareAsk()
	}
	return nil, fmt.Errorf("no role %q", c.Role)
}

// warm opens the connections and teaches Redis the scripts.
func (c childTask) warm(l locker) error {
	if _, once := l.(ender); c.Warm > 0 && !once {
		_, err := c.load().run(l, c.Warm)
		return err
	}
	return l.cycle(fmt.Sprintf("warm:%d", os.Getpid()))(func() {})
}

func (c childTask) load() load {
	return load{
		goroutines: c.Place.Goroutines, hot: c.Hot, try: c.Try, section: c.Section, lead: c.Lead,
		gaps: c.Hot && c.Place.Processes > 1,
	}
}

// loadJob is a load that has warmed up.
type loadJob struct {
	locker
	task   childTask
	inside *atomic.Int64
}

func (c childTask) prepareLoad() (job, error) {
	inside, err := counts(c.Inside)
	if err != nil {
		return nil, err
	}
	l, err := c.open()
	if err != nil {
		return nil, err
	}
	if err := c.warm(l); err != nil {
		l.close()
		return nil, err
	}
	return loadJob{l, c, inside}, nil
}

func (j loadJob) work() (childResult, error) { return j.task.work(j.locker, j.inside) }

// work measures. Where a hand-over may be quicker than a look at the clock, as
// with one key and empty sections in one process, the waits come from a second,
// shorter run.
func (c childTask) work(l locker, inside *atomic.Int64) (r childResult, err error) {
	w := c.load()
	w.inside = inside
	w.blind = w.hot && w.section == 0 && !w.gaps
	_, once := l.(ender) // its waits are not known then
	twice := w.blind && !once
	t, err := w.run(l, c.Duration)
	if err != nil {
		return r, err
	}
	var timed tally
	waits := t.waits
	if twice {
		w.blind = false
		if timed, err = w.run(l, c.Duration/2); err != nil {
			return r, err
		}
		waits = timed.waits
	}
	told, err := encoded(waits)
	return childResult{
		Cycles: t.cycles, All: t.all + timed.all, Shares: t.shares, Gap: t.gap, Section: t.meanSection(),
		Waits: told, Allocated: t.all - t.led, Objects: t.objects, Bytes: t.bytes,
	}, err
}

func (c childTask) open() (locker, error) {
	if c.Library == ringName || c.Library == queueRingName {
		return openRing(c.Addr, c.Place, c.Library == queueRingName)
	}
	open := func() (locker, error) { return libraries[c.Library](c.Addr, c.lease()) }
	l, err := open()
	if err != nil || !c.Try {
		return l, err
	}
	r, err := openRefusals(l, open)
	if err != nil {
		l.close()
	}
	return r, err
}

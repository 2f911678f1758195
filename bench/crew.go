package main

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/rlock"
)

// crew is how many goroutines each of several processes has.
type crew []int

// crewOf is processes with equally many goroutines.
func crewOf(processes, goroutines int) crew { return slices.Repeat(crew{goroutines}, processes) }

// all is the goroutines of all processes.
func (c crew) all() (n int) {
	for _, goroutines := range c {
		n += goroutines
	}
	return n
}

// spans is how many times longer than others a crew works: of many processes each has
// few turns in a short time.
func (c crew) spans() int { return max(1, len(c)/16) }

// work is what every process of a crew does.
type work struct {
	hot     bool // all lock one key; else each goroutine has its own
	section time.Duration
	try     bool // each only tries one key that is held
}

// subject is a crew that does its work by a library. One process alone warms up
// first; several begin together, before what is measured, as they subscribe only when
// they meet.
func (c crew) subject(name, library string, w work) subject {
	return subject{name: name, rival: isRival(library), needs: needs(library), run: func(s *server, d time.Duration) (sample, error) {
		st, err := storeOf(library, s)
		if err != nil {
			return nil, err
		}
		d = max(d*time.Duration(c.spans()), 100*w.section, time.Duration(2*c.all())*w.section) // some turns for everybody
		task := childTask{Addr: st.address(), Library: library, Hot: w.hot, Try: w.try, Section: w.section, Duration: d}
		if len(c) == 1 {
			task.Warm = d / 5
		} else {
			task.Lead = d / 5
		}
		remove := func() {}
		if w.hot && len(c) > 1 {
			if task.Inside, remove, err = insideFile(); err != nil {
				return nil, err
			}
		}
		members, end, err := c.start(task)
		remove() // all have mapped it
		defer end()
		if err != nil {
			return nil, err
		}
		var results []childResult
		store, err := spentDuring(st, func() (err error) {
			results, err = together(members)
			return err
		})
		if err != nil {
			return nil, err
		}
		return c.evaluate(results, store, library, d)
	}}
}

// member is one process of a crew.
type member interface {
	begin(at time.Time) error
	result() (childResult, error)
	kill() error
	release()
	end()
}

// start returns when all processes are ready, with what ends them.
func (c crew) start(task childTask) (members []member, end func(), err error) {
	end = func() {
		for _, m := range members {
			m.release()
		}
		for _, m := range members {
			m.end()
		}
	}
	for i, goroutines := range c {
		task.Place = place{i, len(c), goroutines}
		m, err := startMember(task)
		if err != nil {
			return members, end, err
		}
		members = append(members, m)
	}
	return members, end, nil
}

// alone has one process do a task, and tells what that cost the store. meanwhile runs
// when it is ready and before it begins, if it is not nil.
func alone(st store, task childTask, meanwhile func() error) (r childResult, store spent, err error) {
	members, end, err := crew{inFlight}.start(task)
	defer end()
	if err == nil && meanwhile != nil {
		err = meanwhile()
	}
	if err != nil {
		return r, store, err
	}
	store, err = spentDuring(st, func() error {
		results, err := together(members)
		if err == nil {
			r = results[0]
		}
		return err
	})
	return r, store, err
}

// muster is how long it takes at most to tell all processes when to begin.
const muster = 100 * time.Millisecond

// together lets the processes work at the same time.
func together(members []member) ([]childResult, error) {
	at := time.Now().Add(muster)
	for _, m := range members {
		if err := m.begin(at); err != nil {
			return nil, err
		}
	}
	var results []childResult
	for _, m := range members {
		r, err := m.result()
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// jainOf is Jain's index of counts.
func jainOf(counts []int) float64 {
	var shares []float64
	for _, n := range counts {
		shares = append(shares, float64(n))
	}
	return jain(shares)
}

// evaluate makes a sample of what the processes and the store told.
func (c crew) evaluate(results []childResult, store spent, library string, d time.Duration) (sample, error) {
	t, err := totalOf(results...)
	if err != nil {
		return nil, err
	}
	var processes, goroutines []int
	var gap, section time.Duration
	for _, r := range results {
		processes, goroutines = append(processes, r.Cycles), append(goroutines, r.Shares...)
		gap, section = max(gap, r.Gap), max(section, r.Section)
	}
	got := t.costs(store, library)
	maps.Copy(got, sample{
		"cycles/s":           t.cycles / d.Seconds(),
		"Jain of goroutines": jainOf(goroutines),

		"Jain's index":               jainOf(processes),
		"share of the first process": float64(processes[0]) / t.cycles,
	})
	if section > 0 {
		ideal := time.Duration(c.all()-1) * section
		got["section ms"] = ms(section)
		got["p99 wait ÷ ideal"] = got["lock p99 µs"] * 1e-6 / ideal.Seconds()
	}
	if len(c) > 1 {
		turn := time.Duration(float64(d) / t.cycles)
		if library == holdfastName {
			turn = max(rlock.DefaultLocalHandover, section)
		}
		got["longest without service ms"] = ms(gap)
		got["longest without service ÷ ideal"] = gap.Seconds() / (float64(len(c)-1) * turn.Seconds())
	}
	return got, nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

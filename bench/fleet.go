package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/gonum/floats"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/report"
)

// fleet is the number of goroutines in each of several processes.
type fleet []int

// fleetOf returns processes with equally many goroutines.
func fleetOf(processes, goroutines int) fleet { return slices.Repeat(fleet{goroutines}, processes) }

// all returns the number of goroutines in all processes.
func (f fleet) all() (n int) {
	for _, goroutines := range f {
		n += goroutines
	}
	return n
}

// does returns the measurement of a library that locks and unlocks as work says. One process
// alone warms up first. Several begin together before what is measured, as they subscribe only
// when they meet.
func (f fleet) does(work task) measurement {
	return func(st store, library string, d time.Duration) (report.Sample, error) {
		t := work
		t.Role, t.Library = "load", library
		t.Duration = max(d*time.Duration(max(1, len(f)/16)), 100*t.Section, time.Duration(2*f.all())*t.Section) // some turns for everybody
		if len(f) == 1 {
			t.Warm = t.Duration / 5
		} else {
			t.Lead = max(t.Duration/5, time.Duration(f.all())*500*time.Microsecond) // enough to line up
		}
		if t.Hot && len(f) > 1 {
			t.Inside = insideFile()
		}
		workers := f.start(st, t)
		defer workers.end()
		results, did := workers.observed(st)
		return f.evaluate(results, did, t), nil
	}
}

// crew is the processes of a fleet.
type crew []*worker

// start returns when all processes are ready.
func (f fleet) start(st store, t task) (workers crew) {
	t.Addrs, t.Processes = st.addrs(), len(f)
	if d, ok := st.(*deployment); ok {
		t.Cluster, t.Set = d.cluster, d.set
	}
	for i, goroutines := range f {
		t.Process, t.Goroutines = i, goroutines
		w, err := startWorker(t)
		if err != nil {
			workers.end()
			check(err)
		}
		workers = append(workers, w)
	}
	return workers
}

// end has the processes close their clients, and stops those that are not kept.
func (c crew) end() {
	for _, w := range c {
		w.release()
	}
	for _, w := range c {
		w.end()
	}
}

// together has the processes work at the same time.
func (c crew) together(rate float64) (all []result, err error) {
	at := time.Now()
	if len(c) > 1 {
		at = at.Add(100 * time.Millisecond) // the most that it takes to tell all when to begin
	}
	for _, w := range c {
		w.begin(at, rate)
	}
	for _, w := range c {
		r, failed := w.hear()
		if failed != nil && (err == nil || !strings.Contains(err.Error(), failed.Error())) { // often all fail alike
			err = errors.Join(err, failed)
		}
		all = append(all, r)
	}
	return all, err
}

// observed has the processes work once, and returns also what the store did meanwhile.
func (c crew) observed(st store) (results []result, did spent) {
	did = st.during(func() { results = must(c.together(0)) })
	return results, did
}

// evaluate makes a sample of what the processes did with their task, and of what the store did.
// Where cycles may share the key, no ideal is known.
func (f fleet) evaluate(results []result, did spent, t task) report.Sample {
	var processes, goroutines []float64
	var gap, section time.Duration
	for _, r := range results {
		processes = append(processes, float64(r.Cycles))
		for _, n := range r.Shares {
			goroutines = append(goroutines, float64(n))
		}
		gap, section = max(gap, r.Gap), max(section, r.Section)
	}
	cycles := floats.Sum(processes)
	got := costs(results, waitsOf(results), did, t.Library)
	got["cycles/s"], got["Jain of goroutines"] = cycles/t.Duration.Seconds(), jain(goroutines)
	if section > 0 && t.Shared == 0 {
		ideal := time.Duration(f.all()-1) * section // one section of each of the others
		got["section ms"], got["p99 wait ÷ ideal"] = ms(section), got["lock p99 µs"]*1e-6/ideal.Seconds()
	}
	if len(f) > 1 {
		got["Jain's index"], got["share of the first process"] = jain(processes), processes[0]/cycles
	}
	if len(f) > 1 && t.Shared == 0 {
		// Ideally, each process is without service for one turn of every other. A turn is one
		// cycle, or with local handover its tenure, or one section if that is longer.
		turn := time.Duration(float64(t.Duration) / cycles)
		if t.Library == "holdfast" {
			turn = max(holdfast.DefaultLocalHandover, section)
		}
		got["longest without service ms"] = ms(gap)
		got["longest without service ÷ ideal"] = gap.Seconds() / (float64(len(f)-1) * turn.Seconds())
	}
	return got
}

// costs returns what a cycle cost and how long it waited, under the names in the tables.
func costs(results []result, waits *waits, did spent, library string) report.Sample {
	var all, cpu, allocated, objects, bytes float64
	for _, r := range results {
		all += float64(r.All)
		cpu += r.CPU
		allocated += float64(r.Allocated)
		objects += float64(r.Objects)
		bytes += float64(r.Bytes)
	}
	got := report.Sample{"server CPU µs/cycle": did.cpu / all * 1e6, "client CPU µs/cycle": cpu / all * 1e6}
	if objects > 0 {
		got["allocations/cycle"], got["bytes/cycle"] = objects/allocated, bytes/allocated
	}
	if did.calls != nil {
		got["commands/cycle"] = float64(did.sent(library)) / all
	}
	if waits.TotalCount() > 0 {
		for name, q := range map[string]float64{"lock p50 µs": 50, "lock p99 µs": 99, "lock p99.9 µs": 99.9, "lock max µs": 100} {
			got[name] = float64(waits.ValueAtQuantile(q)) / 1e3
		}
	}
	return got
}

// waits is a histogram of ns, from a tenth of a µs to ten minutes, within 1 %. In JSON it is as
// HdrHistogram writes it.
type waits struct{ *hdrhistogram.Histogram }

func newWaits() *waits { return &waits{hdrhistogram.New(100, (10 * time.Minute).Nanoseconds(), 2)} }

func (w *waits) add(d time.Duration) {
	_ = w.RecordValue(d.Nanoseconds()) // nothing lasts longer than patience
}

func (w *waits) MarshalText() ([]byte, error) {
	return w.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

func (w *waits) UnmarshalText(text []byte) (err error) {
	w.Histogram, err = hdrhistogram.Decode(text)
	return err
}

// waitsOf returns the waits of all processes.
func waitsOf(results []result) *waits {
	all := newWaits()
	for _, r := range results {
		all.Merge(r.Waits.Histogram)
	}
	return all
}

// jain returns Jain's index of fairness, (Σx)² / n·Σx²: 1 if all shares are equal, 1/n if one
// has all, and NaN if all are 0. (Jain, Chiu, Hawe, DEC TR-301, 1984.)
func jain(shares []float64) float64 {
	sum := floats.Sum(shares)
	return sum * sum / (float64(len(shares)) * floats.Dot(shares, shares))
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

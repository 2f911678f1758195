package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"time"

	"github.com/prometheus/procfs"

	"github.com/holdfast-go/holdfast/bench/report"
)

// workload is one kind of work that its subjects do in turn.
type workload struct {
	name     string
	subjects []subject // the first one is ours
}

// measurement has a library do some work once, for about d, on an empty store. subject.measure
// catches a check that fails in it.
type measurement func(st store, library string, d time.Duration) (report.Sample, error)

// subject is a library, or one library with some settings, that does the work.
type subject struct {
	name    string
	library string
	start   func(*starter) *deployment // the servers that it needs for itself; nil: the one of the workload, or the library's own
	run     measurement
}

// each returns libraries as subjects that do the same work.
func each(libraries []string, start func(*starter) *deployment, run measurement) (all []subject) {
	for _, name := range libraries {
		all = append(all, subject{name, name, start, run})
	}
	return all
}

// errIncomplete is of a subject that did not do all its work, but whose figures are good as
// far as they go.
var errIncomplete = errors.New("incomplete")

// measure runs the workload on a server of its own. Each round begins with another subject. A
// subject that fails is left out of its round, with a note. err holds the failures that must
// not happen; m holds what was measured all the same.
func (w workload) measure(rounds int, d time.Duration, log io.Writer) (m report.Workload, err error) {
	m = report.Workload{Name: w.name}
	for _, s := range w.subjects {
		m.Subjects = append(m.Subjects, s.name)
	}
	on, err := deploy(independent(1))
	if err != nil {
		return m, fmt.Errorf("%s: %w", w.name, err)
	}
	defer on.stop()
	var failures []error
	for i := range rounds {
		r := make(report.Round)
		for j := range w.subjects {
			s := w.subjects[(i+j)%len(w.subjects)]
			fmt.Fprintf(log, "%s, round %d of %d: %s\n", w.name, i+1, rounds, s.name)
			got, stolen, err := s.undisturbed(on, d)
			m.Stolen = max(m.Stolen, stolen)
			if err == nil || errors.Is(err, errIncomplete) {
				maps.DeleteFunc(got, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
				r[s.name] = got
			}
			if err == nil {
				continue
			}
			note := fmt.Sprintf("%s failed in round %d: %v", s.name, i+1, err)
			fmt.Fprintf(log, "bench: %s\n", note)
			if l := libraries[s.library]; l != nil {
				l.abandon()
			}
			m.Notes = append(m.Notes, note)
			if !report.IsRival(s.library) || errors.Is(err, errNotStarted) { // other failures of a rival are only notes
				failures = append(failures, fmt.Errorf("%s: %s in round %d: %w", w.name, s.name, i+1, err))
			}
		}
		m.Rounds = append(m.Rounds, r)
	}
	return m, errors.Join(failures...)
}

// undisturbed measures again what the machine's host has disturbed. It returns how much time
// the host took during the last try.
func (s subject) undisturbed(on *deployment, d time.Duration) (got report.Sample, stolen float64, err error) {
	for range 3 { // the last one counts
		before := spentSoFar()
		got, err = s.measure(on, d)
		if stolen = spentSoFar().stolenSince(before); err != nil || stolen <= report.MaxStolen {
			break
		}
	}
	return got, stolen, err
}

// measure does the work once, on the store that the subject needs.
func (s subject) measure(on *deployment, d time.Duration) (_ report.Sample, err error) {
	defer caught(&err)
	check(on.empty())
	var st store = on
	if s.start != nil {
		own := must(deploy(s.start))
		defer own.stop()
		st = own
	} else if l := libraries[s.library]; l != nil && l.server != nil {
		st = must(l.ownServer())
	}
	return s.run(st, s.library, d)
}

// processors is how their time was spent since the machine was started, in seconds, as far as
// the system says.
type processors struct{ stolen, all float64 }

// spentSoFar reads it. Tests replace it.
var spentSoFar = func() (p processors) {
	if fs, err := procfs.NewDefaultFS(); err == nil {
		stat, _ := fs.Stat() // without it, all is 0
		t := stat.CPUTotal
		p = processors{t.Steal, t.User + t.Nice + t.System + t.Idle + t.Iowait + t.IRQ + t.SoftIRQ + t.Steal} // guests are in User and Nice
	}
	return p
}

// stolenSince returns the share that was stolen; 0 where it is not known.
func (p processors) stolenSince(before processors) float64 {
	if p.all <= before.all {
		return 0
	}
	return (p.stolen - before.stolen) / (p.all - before.all)
}

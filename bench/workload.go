package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
)

// workload is one kind of work that its subjects do in turn.
type workload struct {
	name     string
	subjects []subject // the first one is ours
}

// subject is a library, or one library with some settings, that does the work.
type subject struct {
	name    string
	library string
	nodes   int // how many servers it needs of its own; 0: the one of the workload, or what the library has instead
	// run does the work once, for about d, on an empty store.
	run func(st store, d time.Duration) (report.Sample, error)
}

// rival: a failure is noted in the report and does not make the run fail, unless it is that
// a server does not start.
func (s subject) rival() bool { return report.IsRival(s.library) }

// errIncomplete is of a subject that did not do what it should, but whose figures are good
// as far as they go.
var errIncomplete = errors.New("incomplete")

// measure runs the workload on a server of its own; each round begins with another subject.
// A subject that fails is left out of its round, with a note. err tells what must not happen;
// what was measured is there all the same.
func (w workload) measure(rounds int, d time.Duration, tell io.Writer) (m report.Workload, err error) {
	m = report.Workload{Name: w.name}
	for _, s := range w.subjects {
		m.Subjects = append(m.Subjects, s.name)
	}
	on, err := startServer()
	if err != nil {
		return m, fmt.Errorf("%s: %w", w.name, err)
	}
	defer func() { on.stop() }()
	var failures []error
	for i := range rounds {
		r := make(report.Round)
		for j := range w.subjects {
			s := w.subjects[(i+j)%len(w.subjects)]
			fmt.Fprintf(tell, "%s, round %d of %d: %s\n", w.name, i+1, rounds, s.name)
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
			fmt.Fprintf(tell, "bench: %s\n", note)
			abandon(s.library)
			m.Notes = append(m.Notes, note)
			if !s.rival() || errors.Is(err, errNotStarted) {
				failures = append(failures, fmt.Errorf("%s: %s in round %d: %w", w.name, s.name, i+1, err))
			}
		}
		m.Rounds = append(m.Rounds, r)
	}
	return m, errors.Join(failures...)
}

// undisturbed measures again what the machine's host has disturbed, and tells how much it
// has disturbed the last try.
func (s subject) undisturbed(on *server, d time.Duration) (got report.Sample, stolen float64, err error) {
	for range mostTries {
		before := spentSoFar()
		got, err = s.measure(on, d)
		if stolen = spentSoFar().stolenSince(before); err != nil || stolen <= mostStolen {
			break
		}
	}
	return got, stolen, err
}

// measure does the work once, on the store that the subject needs.
func (s subject) measure(on *server, d time.Duration) (report.Sample, error) {
	if err := on.empty(); err != nil {
		return nil, err
	}
	switch {
	case s.nodes > 0:
		all, err := startNodes(s.nodes)
		if err != nil {
			return nil, err
		}
		defer all.stop()
		return s.run(all, d)
	case libraries[s.library] != nil && libraries[s.library].server != nil:
		st, err := ownServer(s.library)
		if err != nil {
			return nil, err
		}
		return s.run(st, d)
	}
	return s.run(on, d)
}

const (
	// mostStolen is the share of the processors' time that the host of a virtual machine
	// may take for others during a measurement. With more of it, that is made again.
	mostStolen = 0.03
	// mostTries is how often it is made at most; the last one counts.
	mostTries = 3
)

// processors is how the time of all of them was spent since the machine was started, in
// ticks, as far as the system tells.
type processors struct{ stolen, all float64 }

// spentSoFar tells it; a test has others.
var spentSoFar = func() processors {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	return processorsOf(line)
}

// processorsOf reads the first line of /proc/stat: user, nice, system, idle, iowait, irq,
// softirq, steal, and what is in the first two already. (proc(5))
func processorsOf(line string) (p processors) {
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return p
	}
	for _, field := range fields[1:9] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return processors{}
		}
		p.all, p.stolen = p.all+ticks, ticks
	}
	return p
}

// stolenSince is the share that was stolen; 0 where it is not known.
func (p processors) stolenSince(before processors) float64 {
	if p.all <= before.all {
		return 0
	}
	return (p.stolen - before.stolen) / (p.all - before.all)
}

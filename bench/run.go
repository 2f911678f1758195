package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"time"
)

// workload is one kind of work that its subjects do in turn.
type workload struct {
	name     string
	subjects []subject
	figures  []figure
	// spans is how many times longer than others it takes to measure a subject; 0 is
	// as long.
	spans float64
}

// subject is who is measured.
type subject struct {
	name string
	// rival: a failure is noted in the report and does not make the run fail, unless it
	// is that a server does not start.
	rival bool
	// needs tells why the subject cannot be measured here; nil if it always can.
	needs func() error
	// run does the work once, for about d, on an empty server.
	run func(s *server, d time.Duration) (sample, error)
}

// sample is what one measurement of one subject gave: figures by name, with
// their unit in it.
type sample map[string]float64

// round is what one round gave, by subject. A rival that failed is missing.
type round map[string]sample

// figure is one line of the table, worked out for each round.
type figure struct {
	name   string
	target target
	value  func(round) float64 // NaN if it is not known
}

var nan = math.NaN()

// of is the figure of one subject.
func of(subject, name string) func(round) float64 {
	return func(r round) float64 {
		if v, ok := r[subject][name]; ok {
			return v
		}
		return nan
	}
}

// ratio compares the figures of two subjects in the same round.
func ratio(subject, other, name string) func(round) float64 {
	a, b := of(subject, name), of(other, name)
	return func(r round) float64 { return a(r) / b(r) }
}

// target is what a figure must reach.
type target struct {
	sign  string // "≥", "≤", "=", or none
	bound float64
}

func atLeast(x float64) target { return target{"≥", x} }
func atMost(x float64) target  { return target{"≤", x} }
func exactly(x float64) target { return target{"=", x} }

// met says whether v reaches the target.
func (t target) met(v float64) bool {
	switch t.sign {
	case "≥":
		return v >= t.bound
	case "≤":
		return v <= t.bound
	case "=":
		return v == t.bound
	}
	return true
}

// measure runs the workload on a server of its own and tells of its progress. A
// subject that fails is left out of its round, with a note; err tells what must not
// happen, and what was measured is there all the same.
func (w workload) measure(rounds int, d time.Duration, tell *progress) (m measured, err error) {
	m = measured{Name: w.name, workload: w}
	s, err := startServer()
	if err != nil {
		err = fmt.Errorf("%s: %w", w.name, err)
		tell.say(err.Error())
		return m, err
	}
	defer func() { s.stop() }()
	var failures []error
	for i := range rounds {
		r := make(round)
		for j := range w.subjects {
			subject := w.subjects[(i+j)%len(w.subjects)]
			tell.step(w, fmt.Sprintf("%s, round %d of %d: %s", w.name, i+1, rounds, subject.name))
			got, stolen, err := subject.undisturbed(s, d)
			m.Stolen = max(m.Stolen, stolen)
			if err == nil || errors.Is(err, errIncomplete) {
				r[subject.name] = got.known()
			}
			if err == nil {
				continue
			}
			note := fmt.Sprintf("%s failed in round %d: %v", subject.name, i+1, err)
			tell.say(note)
			abandon(subject.name)
			m.Notes = append(m.Notes, note)
			if !subject.rival || errors.Is(err, errNotStarted) {
				failures = append(failures, fmt.Errorf("%s: %s in round %d: %w", w.name, subject.name, i+1, err))
			}
		}
		m.Rounds = append(m.Rounds, r)
	}
	return m, errors.Join(failures...)
}

// undisturbed measures again what the machine's host has disturbed, and tells how much
// it has disturbed the last.
func (s subject) undisturbed(on *server, d time.Duration) (got sample, stolen float64, err error) {
	for range mostTries {
		before := spentSoFar()
		got, err = s.measure(on, d)
		if stolen = spentSoFar().stolenSince(before); err != nil || stolen <= mostStolen {
			break
		}
	}
	return got, stolen, err
}

// measure does the work on an emptied server, or on a new one if that has ended.
func (s subject) measure(on *server, d time.Duration) (sample, error) {
	if err := on.empty(); err != nil {
		if err := on.restart(); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotStarted, err)
		}
	}
	return s.run(on, d)
}

// errIncomplete is of a subject that did not do what it should, but whose figures are
// good as far as they go.
var errIncomplete = errors.New("incomplete")

// known is a sample without the figures that could not be told.
func (s sample) known() sample {
	maps.DeleteFunc(s, func(_ string, v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	return s
}

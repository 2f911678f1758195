package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// workload is one kind of work that its subjects do in turn.
type workload struct {
	name     string
	subjects []subject
	figures  []figure
}

// subject is who is measured.
type subject struct {
	name string
	// rival: a failure is noted in the report and does not end the run.
	rival bool
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

// of is the figure of one subject.
func of(subject, name string) func(round) float64 {
	return func(r round) float64 {
		if v, ok := r[subject][name]; ok {
			return v
		}
		return math.NaN()
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

// measure runs the workload on a server of its own and tells of its progress.
func (w workload) measure(rounds int, d time.Duration, progress io.Writer) (measured, error) {
	m := measured{Name: w.name, workload: w}
	s, err := startServer()
	if err != nil {
		return m, err
	}
	defer s.stop()
	for i := range rounds {
		r := make(round)
		for j := range w.subjects {
			subject := w.subjects[(i+j)%len(w.subjects)]
			fmt.Fprintf(progress, "%s, round %d of %d: %s\n", w.name, i+1, rounds, subject.name)
			if err := s.empty(); err != nil {
				return m, err
			}
			got, err := subject.run(s, d)
			switch {
			case err == nil:
				r[subject.name] = got
			case subject.rival:
				m.Notes = append(m.Notes, fmt.Sprintf("%s failed in round %d: %v", subject.name, i+1, err))
			default:
				return m, fmt.Errorf("%s: %w", subject.name, err)
			}
		}
		m.Rounds = append(m.Rounds, r)
	}
	return m, nil
}

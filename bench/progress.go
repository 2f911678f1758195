package main

import (
	"fmt"
	"io"
	"time"
)

// progress tells what is measured, and how long the rest will take if it takes as
// much longer than planned as what is done. It belongs to one goroutine.
type progress struct {
	to         io.Writer
	begun      time.Time
	done, left float64 // in usual measurements
	last       float64 // the step that is under way
}

// newProgress is for these workloads in so many rounds.
func newProgress(to io.Writer, all []workload, rounds int) *progress {
	p := &progress{to: to, begun: time.Now()}
	for _, w := range all {
		p.left += w.weight() * float64(len(w.subjects)*rounds)
	}
	return p
}

// say tells something beside the steps.
func (p *progress) say(what string) { fmt.Fprintf(p.to, "bench: %s\n", what) }

// weight is how long a measurement of one subject takes, in usual ones.
func (w workload) weight() float64 { return max(w.spans, 1) }

// step begins the next measurement.
func (p *progress) step(w workload, what string) {
	p.done += p.last
	p.left -= p.last
	p.last = w.weight()
	rest := "time left not known yet"
	if p.done > 0 {
		each := time.Since(p.begun).Seconds() / p.done
		rest = "about " + time.Duration(each*p.left*float64(time.Second)).Round(time.Second).String() + " left"
	}
	fmt.Fprintf(p.to, "%s (%s)\n", what, rest)
}

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// markdown is the whole report as a page.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString(r.head())
	for _, m := range r.Workloads {
		b.WriteString(m.lines())
	}
	b.WriteString(r.sideBySide())
	b.WriteString(r.notes())
	return b.String()
}

// head begins the page; the lines of the workloads follow.
func (r *report) head() string {
	return fmt.Sprintf("%s · commit %s · %s · %s · load before %s · at most %d rounds of %s\n\n",
		r.Date.Format(time.DateTime), r.Commit, r.Machine, r.Versions, r.Load, r.Rounds, r.Time) +
		"| workload | figure | target | median | min – max | |\n|---|---|---|---:|---:|---|\n"
}

// lines are those of one workload in the table of targets.
func (m measured) lines() string {
	var b strings.Builder
	for _, f := range m.workload.figures {
		b.WriteString(f.line(m) + "\n")
	}
	return b.String()
}

// notes end the page with what went wrong and what is missing.
func (r *report) notes() string {
	var b strings.Builder
	for _, left := range r.LeftOut {
		fmt.Fprintf(&b, "\nLeft out: %s\n", left)
	}
	for _, m := range r.Workloads {
		if m.Apart != "" {
			fmt.Fprintf(&b, "\n%s: measured again on %s\n", m.Name, m.Apart)
		}
		for _, n := range m.Notes {
			fmt.Fprintf(&b, "\n%s: %s\n", m.Name, n)
		}
		if m.Stolen > mostStolen {
			fmt.Fprintf(&b, "\n%s: the machine's host took up to %.0f %% of the processors' time for others\n", m.Name, m.Stolen*100)
		}
	}
	return b.String()
}

func (f figure) line(m measured) string {
	values := m.values(f.value)
	want, mark := "", ""
	if f.target.sign != "" {
		want = f.target.sign + " " + number(f.target.bound)
	}
	if len(values) == 0 {
		return fmt.Sprintf("| %s | %s | %s | – | – | |", m.Name, f.name, want)
	}
	middle := median(values)
	switch {
	case want == "":
	case f.target.met(middle):
		mark = "✓"
	default:
		mark = "missed"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s – %s | %s |", m.Name, f.name, want,
		number(middle), number(slices.Min(values)), number(slices.Max(values)), mark)
}

// values are those of all rounds in which the figure is known.
func (m measured) values(value func(round) float64) (known []float64) {
	for _, r := range m.Rounds {
		if v := value(r); !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	return known
}

// number prints three digits or a little more.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case a >= 1e4:
		return fmt.Sprintf("%.1f k", v/1e3)
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

package report

import (
	"fmt"
	"math"
	"strings"
)

// column is a figure in the tables, with the head of its column.
type column struct {
	figure, head string
	less         bool // less is better
}

const recovered = "ms until the waiter has it"

// columns are shown where one of the subjects has them. The first one compares the subjects.
var columns = []column{
	{speed, "cycles/s", false},
	{served, "ms to serve all", true},
	{client, "client CPU µs/renewal", true},
	{recovered, recovered, true},
	{"lock ms", "lock ms", true},
	{"cycle ms", "cycle ms", true},
	{"lock ms, two hang", "lock ms, two hang", true},
	{"cycle ms, two hang", "cycle ms, two hang", true},
	{"first lock, hang not known: ms more", "first lock, hang not known: ms more", true},
	{"first lock of a new locker: ms more", "first lock of a new locker: ms more", true},
	{"p99 ms at the first rate", "p99 ms at 500/s", true},
	{"lock p50 µs", "p50 µs", true},
	{"lock p99 µs", "p99", true},
	{"lock p99.9 µs", "p99.9", true},
	{"lock max µs", "max", true},
	{commands, "commands", true},
	{"commands/s", "commands/s before", true},
	{"calls/s", "calls/s", true},
	{"server CPU µs/cycle", "server CPU µs", true},
	{"client CPU µs/cycle", "client CPU µs", true},
	{"server CPU µs/renewal", "server CPU µs/renewal", true},
	{"renewals per lease and interval", "renewals per lease and interval", true},
	{"longest script ms", "longest script ms", true},
	{"allocations/cycle", "allocations", true},
	{"bytes/cycle", "bytes", true},
	{"bytes/waiter", "bytes/waiter", true},
	{"heap bytes/waiter", "of it heap", true},
	{"goroutines/waiter", "goroutines/waiter", true},
	{"bytes/lease", "bytes/lease", true},
	{"goroutines/lease", "goroutines/lease", true},
	{"p99 wait ÷ ideal", "p99 ÷ ideal", true},
	{"longest without service ÷ ideal", "longest without service ÷ ideal", true},
	{"Jain of goroutines", "Jain, goroutines", false},
	{"Jain's index", "Jain, processes", false},
	{"share of the first process", "share of the first", false},
}

// MaxStolen is the share of the processors' time that the host of a virtual machine may take for others
// during a measurement. If it takes more, the measurement is repeated, and in the end the table says so.
const MaxStolen = 0.03

// Markdown returns the whole page.
func (r *Results) Markdown() string {
	var missed, ahead, all strings.Builder
	for _, w := range r.Workloads {
		for _, t := range w.targets() {
			if v := w.median(t.value); !t.met(v) {
				fmt.Fprintf(&missed, "- %s: %s is %s, to be %s %s\n", w.Name, t.name(), number(v), t.sign, number(t.bound))
			}
		}
		if names := w.ahead(); len(names) > 0 {
			fmt.Fprintf(&ahead, "- %s: %s\n", w.Name, strings.Join(names, ", "))
		}
		all.WriteString(w.Markdown())
	}
	text := fmt.Sprintf("# Figures\n\n%s; %s; load before %s; at most %d rounds of %s.\n\n"+
		"Medians of the rounds. “Better” is how many times better the first subject is by the first column, as a ratio of figures of the\n"+
		"same round. p50 to max run from asking for the lock to having it. Where many wait for one release, they run from that release; in\n"+
		"a flash sale from the time at which a customer was due, at the highest rate that was served. The columns after them are per cycle,\n"+
		"which is one waiter or one customer there.\n",
		r.Machine, r.Versions, r.Load, r.Rounds, r.Time)
	for _, left := range r.LeftOut {
		text += "\nLeft out: " + left + "\n"
	}
	if missed.Len() > 0 {
		text += "\n## Targets that are missed\n\n" + missed.String()
	}
	if ahead.Len() > 0 {
		text += "\n## Where a rival is ahead\n\n" + ahead.String()
	}
	return text + all.String()
}

// Markdown returns the table of one workload, its targets, and what went wrong.
func (w Workload) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\nMeasured on %s.\n\n| | better |", w.Name, w.Measured)
	shown := columns[:0:0]
	for _, c := range columns {
		if w.has(c) {
			shown = append(shown, c)
			fmt.Fprintf(&b, " %s |", c.head)
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(shown)+1) + "\n")
	for _, s := range w.Subjects {
		fmt.Fprintf(&b, "| %s | %s |", s, number(w.better(s)))
		for _, c := range shown {
			fmt.Fprintf(&b, " %s |", number(w.medianOf(s, c.figure)))
		}
		b.WriteString("\n")
	}
	if targets := w.targets(); len(targets) > 0 {
		b.WriteString("\n| target | | median | min – max | |\n|---|---|---:|---:|---|\n")
		for _, t := range targets {
			all, v := w.known(t.value), w.median(t.value)
			mark := "missed"
			if t.met(v) {
				mark = "✓"
			}
			fmt.Fprintf(&b, "| %s | %s %s | %s | %s – %s | %s |\n", t.name(), t.sign, number(t.bound), number(v),
				number(all[0]), number(all[len(all)-1]), mark)
		}
	}
	for _, n := range w.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	if w.Stolen > MaxStolen {
		fmt.Fprintf(&b, "\nThe machine's host took up to %.0f %% of the processors' time for others.\n", w.Stolen*100)
	}
	return b.String()
}

// number returns a figure with some three digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return "∞"
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

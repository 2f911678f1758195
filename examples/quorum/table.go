package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// account is what is known after the run.
type account struct {
	sections, value      int // the value counts the sections, if nobody was inside with another
	lost, missed, double int
	waits                []time.Duration // sorted
	faults               map[string]int  // by kind
	took                 time.Duration
	early                bool // stopped by Ctrl-C
	guard, embedded      bool // as the options
}

// account of a run that is over.
func (d *drill) account(early bool) *account {
	c := d.counter
	c.mu.Lock()
	defer c.mu.Unlock()
	return &account{
		sections: c.sections, value: c.value, lost: c.lost, missed: int(d.missed.Load()), double: c.double,
		waits: slices.Sorted(slices.Values(c.waits)), faults: d.faults, took: d.took,
		early: early, guard: d.options.guard, embedded: d.options.embedded,
	}
}

// exclusive says whether nobody was inside together with another.
func (a *account) exclusive() bool { return a.double == 0 && a.value == a.sections }

// shown says whether the run has shown anything.
func (a *account) shown() bool { return a.sections > 0 }

func (a *account) clean() bool { return a.exclusive() && (a.shown() || a.early) }

func (a *account) print(out io.Writer) {
	row := func(name string, value any, note string) {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%-24s %9v %s", name, value, note), " "))
	}
	fmt.Fprintln(out)
	row("sections", a.sections, fmt.Sprintf("(%.0f per second)", float64(a.sections)/a.took.Seconds()))
	row("counter", a.value, "")
	row("leases lost", a.lost, "(before the section wrote; it did not then)")
	row("locks not got", a.missed, "(too few nodes voted for too long)")
	if len(a.waits) > 0 {
		row("wait for the lock, p50", a.wait(50), "")
		row("                   p99", a.wait(99), "")
		row("                   max", a.wait(100), "")
	}
	total, each := 0, []string(nil)
	for _, kind := range kinds {
		total += a.faults[kind]
		each = append(each, fmt.Sprintf("%d %s", a.faults[kind], kind))
	}
	row("faults", total, "("+strings.Join(each, ", ")+")")
	row("double holds", a.double, "")
	fmt.Fprintf(out, "\n%s\n", a.verdict())
}

func (a *account) verdict() string {
	switch {
	case !a.exclusive() && !a.guard:
		return fmt.Sprintf("WRONG, as was to be expected: %d times somebody came in while another was inside, and %d of %d sections\n"+
			"are missing from the counter. Nodes that restarted had forgotten who holds the lock, and voted for the next.\n"+
			"Run it again without -guard=false to see what the guard is for.", a.double, a.sections-a.value, a.sections)
	case !a.exclusive() && a.embedded:
		return "WRONG: two were inside together. With embedded servers there is no restart guard."
	case !a.exclusive():
		return "WRONG: two were inside together."
	case a.early:
		return "Stopped early. So far nobody was inside together with another."
	case !a.shown():
		return "NOTHING SHOWN: nobody got the lock."
	case !a.guard:
		return "Well, by luck: without the guard nothing guarantees it. Try a longer -time or more -goroutines."
	}
	return "All is well: nobody was inside together with another, and the counter has every section."
}

// wait returns the given percentile of the waits, by nearest rank.
func (a *account) wait(percent int) time.Duration {
	rank := (len(a.waits)*percent + 99) / 100
	return a.waits[rank-1].Round(10 * time.Microsecond)
}

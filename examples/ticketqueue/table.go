package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
)

// account is the order of service, as it stands in Redis, beside that of arrival.
type account struct {
	lines []line // in the order of arrival

	served, goneWaiting, goneServing, unserved int // customers; unserved after an early end only
	overtaken, inversions                      int // customers, and pairs of them
	lost, double                               int // reported as served and not in the list; in the list twice
}

type line struct {
	name    string
	process int // 0: has not come
	wait    time.Duration
	served  int // from 1; 0: was not served
	after   int // customers that came later and were served before
	fate    string
}

// account reads the list of a day that is over.
func (d *day) account() (*account, error) {
	list, err := d.counter.served(context.Background())
	if err != nil {
		return nil, err
	}
	a := &account{lines: make([]line, len(d.customers))}
	for at, i := range list {
		if i < 0 || i >= len(a.lines) || a.lines[i].served > 0 {
			a.double++
			continue
		}
		a.lines[i].served = at + 1
	}
	for i, v := range d.visits {
		l := &a.lines[i]
		l.name, l.wait = d.customers[i].Name, v.wait
		if v.process != nil {
			l.process = v.process.number
		}
		switch {
		case l.served > 0:
			a.served++
		case v.place == through:
			a.lost++
			l.fate = "LOST: was served and is not in the list"
		case v.gone && v.place == atCounter:
			a.goneServing++
			l.fate = "killed while served"
		case v.gone:
			a.goneWaiting++
			l.fate = "gone: killed in the queue"
		default:
			a.unserved++
			l.fate = "not served"
		}
	}
	a.compare()
	return a, nil
}

// compare counts, for each who was served, who overtook it.
func (a *account) compare() {
	for i := range a.lines {
		l := &a.lines[i]
		for _, later := range a.lines[i+1:] {
			if l.served > 0 && later.served > 0 && later.served < l.served {
				l.after++
			}
		}
		if l.after > 0 {
			a.overtaken++
			a.inversions += l.after
			l.fate = fmt.Sprintf("OVERTAKEN by %d", l.after)
		}
	}
}

func (a *account) clean() bool { return a.inversions+a.lost+a.double == 0 }

func (a *account) print(out io.Writer, guard string) {
	fmt.Fprintf(out, "\n%7s  %-16s %7s %10s  %s\n", "arrival", "customer", "process", "waited", "service")
	came := 0
	for i, l := range a.lines {
		if l.process == 0 {
			continue
		}
		came++
		served, wait := "-", "-"
		if l.served > 0 {
			served = strconv.Itoa(l.served)
		}
		if l.wait > 0 {
			wait = fmt.Sprint(l.wait.Round(100 * time.Microsecond))
		}
		fmt.Fprintf(out, "%7d  %-16s %7d %10s  %7s", i+1, l.name, l.process, wait, served)
		if l.fate != "" {
			fmt.Fprint(out, "  ", l.fate)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	row := func(name string, n int) { fmt.Fprintf(out, "%-24s %6d\n", name, n) }
	row("customers", len(a.lines))
	row("served", a.served)
	row("killed in the queue", a.goneWaiting)
	row("killed while served", a.goneServing)
	if a.unserved > 0 {
		row("not served", a.unserved)
	}
	row("overtaken", a.overtaken)
	row("inversions", a.inversions)
	row("lost or served twice", a.lost+a.double)
	fmt.Fprintf(out, "\n%s\n", a.verdict(guard))
}

func (a *account) verdict(guard string) string {
	switch {
	case !a.clean() && guard == guardRlock:
		return fmt.Sprintf("WRONG, as was to be expected: %d customers were overtaken. The lock rlock serves one at a time, but\n"+
			"between processes in no order. Run it again without -guard=rlock to see what the fair lock is for.", a.overtaken)
	case !a.clean():
		return "WRONG: somebody was overtaken, lost or served twice."
	case guard == guardRlock:
		return "In order, by luck: without the fair lock nothing guarantees it. Try more -customers or -processes."
	case a.unserved > 0:
		return "Stopped early. Those who were served were served in the order in which they came."
	}
	return "All is well: everybody who lived was served, in the order in which they came."
}

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"time"
)

func main() {
	if runChild() {
		return
	}
	pattern := flag.String("run", "", "measure only workloads whose name matches this `regexp`")
	rounds := flag.Int("rounds", 5, "measure every subject this many times")
	d := flag.Duration("time", time.Second, "length of one measurement; a few workloads need a multiple of it")
	raw := flag.String("json", "", "write the raw figures to this `file`")
	flag.Parse()

	wanted, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
		usage("-run: %v", err)
	case *rounds < 1:
		usage("-rounds: %d is less than 1", *rounds)
	case *d < 10*time.Millisecond:
		usage("-time: %v is less than 10ms", *d)
	case flag.NArg() > 0:
		usage("unexpected argument %q", flag.Arg(0))
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		usage("redis-server is not on the PATH")
	}
	var chosen []workload
	for _, w := range workloads() {
		if wanted.MatchString(w.name) {
			chosen = append(chosen, w)
		}
	}
	if len(chosen) == 0 {
		usage("-run: no workload matches %q", *pattern)
	}

	report := newReport(*rounds, *d)
	report.printHead(os.Stdout)
	for _, w := range chosen {
		m, err := w.measure(*rounds, *d, os.Stderr)
		if err != nil {
			fail(fmt.Errorf("%s: %w", w.name, err))
		}
		m.print(os.Stdout)
		report.Workloads = append(report.Workloads, m)
		if *raw != "" {
			if err := report.save(*raw); err != nil {
				fail(err)
			}
		}
	}
	report.printNotes(os.Stdout)
}

// workloads lists all workloads in the order of the table.
func workloads() []workload {
	var all []workload
	for _, n := range []int{1, 4, 16, 64, 256} {
		all = append(all, uncontended(n))
	}
	for _, d := range []time.Duration{0, 50 * time.Microsecond, time.Millisecond} {
		all = append(all, hot(64, d))
	}
	for _, d := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
		all = append(all, processes(8, 8, d))
	}
	all = append(all, oneHot(8, 8, 64), waiting(1000), held(20_000, heldLease), held(100_000, heldLease))
	return slices.Concat(all, fairWorkloads(), quorumWorkloads())
}

// fairWorkloads are those of the fair lock.
func fairWorkloads() []workload {
	ring := atLeast(0.75)
	return []workload{
		fairUncontended(1), fairUncontended(16), fairUncontended(64),
		handover(2, 1, ring, ring), handover(8, 1, ring, ring), handover(64, 1, ring, ring),
		handover(8, 8, atLeast(1.2), target{}), handover(1, 64, atLeast(4), target{}),
		queues(10, 100, 1000, 10_000),
		fairWaiting(1000),
	}
}

// quorumWorkloads are those of the lock on a quorum.
func quorumWorkloads() []workload {
	return []workload{
		quorumUncontended(1, target{}), quorumUncontended(64, atLeast(2)),
		far(),
		quorumHeld(20_000, heldLease),
	}
}

func usage(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
	os.Exit(2)
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	os.Exit(1)
}

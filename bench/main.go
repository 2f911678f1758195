package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
)

func main() {
	if runAgent() {
		return
	}
	status := command(os.Args[1:], os.Stdout, os.Stderr)
	removeFiles()
	os.Exit(status)
}

// The folders of the results. Those of a whole run are kept.
const (
	keptDir = "results"
	tryDir  = "results-quick"
)

// readmeFile is the project's README, relative to this program.
const readmeFile = "../README.md"

// order is what the flags demand.
type order struct {
	workloads []workload
	leftOut   []string // which rivals cannot be measured, and why
	rounds    int
	time      time.Duration
	out       string
	redraw    bool
}

// command measures and returns the exit status: 2 for a wrong call or a missing program, 1 for
// a failed measurement.
func command(args []string, out, log io.Writer) int {
	status := 1
	o, err := parse(args, log)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		status = 2
	case o.redraw:
		err = o.draw()
	default:
		err = o.measure(out, log)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(log, "bench: %v\n", err)
	return status
}

// parse checks all that can be checked before anything is measured.
func parse(args []string, log io.Writer) (o order, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	pattern := f.String("run", "", "measure only workloads whose name matches this `regexp`")
	short := f.Bool("quick", false, "measure only Go libraries on Redis, and without -run only the three main workloads: less than 3 minutes")
	f.IntVar(&o.rounds, "rounds", 3, "measure every subject this many times")
	f.DurationVar(&o.time, "time", 500*time.Millisecond, "length of one measurement; a few workloads need a multiple of it")
	f.StringVar(&o.out, "out", "", "write figures, table and pictures into this `directory`, which keeps what it has of other workloads\n"+
		"(default "+keptDir+"; "+tryDir+" with -quick or -run)")
	f.BoolVar(&o.redraw, "redraw", false, "measure nothing: write table, pictures and the rows of the README again from the figures in -out")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.SetOutput(log)
			f.PrintDefaults()
		}
		return o, err
	}
	if o.out == "" {
		o.out = keptDir
		if *pattern != "" || *short {
			o.out = tryDir
		}
	}
	wanted, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
		return o, fmt.Errorf("-run: %w", err)
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds: %d is less than 1", o.rounds)
	case o.time < 10*time.Millisecond:
		return o, fmt.Errorf("-time: %v is less than 10ms", o.time)
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.redraw:
		return o, nil
	}
	if err := needProgram("redis-server", "redis-server"); err != nil {
		return o, err
	}
	if *short && *pattern == "" {
		wanted = regexp.MustCompile("^(" + strings.Join(quick, "|") + ")$")
	}
	o.choose(wanted, *short)
	if len(o.workloads) == 0 {
		return o, fmt.Errorf("-run: no workload matches %q", wanted)
	}
	return o, nil
}

// choose leaves out what is not wanted, and the rivals that cannot be measured here. A short
// run silently leaves out all rivals that need a program.
func (o *order) choose(wanted *regexp.Regexp, short bool) {
	without := make(map[string][]string) // names by reason
	for _, w := range workloads() {
		if !wanted.MatchString(w.name) {
			continue
		}
		w.subjects = slices.DeleteFunc(w.subjects, func(s subject) bool {
			absent := libraries[s.library].absent
			if absent == nil || short {
				return absent != nil
			}
			err := absent()
			if err != nil && !slices.Contains(without[err.Error()], s.name) {
				without[err.Error()] = append(without[err.Error()], s.name)
			}
			return err != nil
		})
		o.workloads = append(o.workloads, w)
	}
	for why, names := range without {
		slices.Sort(names)
		o.leftOut = append(o.leftOut, strings.Join(names, ", ")+": "+why)
	}
	slices.Sort(o.leftOut)
}

// measure brings the files up to date after every workload. After a failure it goes on, and
// returns the error at the end.
func (o order) measure(out, log io.Writer) error {
	r := &report.Results{
		Machine: machine(), Versions: versions(), Load: found(`(.*)`)(os.ReadFile("/proc/loadavg")),
		Rounds: o.rounds, Time: o.time.String(), LeftOut: o.leftOut,
	}
	if err := r.Continue(o.out); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	defer stopOwnServers()
	defer stopJava()
	ctx, over := signal.NotifyContext(always, os.Interrupt, syscall.SIGTERM)
	defer over()
	defer context.AfterFunc(ctx, func() {
		stopOwnServers()
		removeFiles()
		os.Exit(130)
	})()
	for _, left := range o.leftOut {
		fmt.Fprintf(log, "bench: left out: %s\n", left)
	}
	commit := found(`(.*)`)(exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output())
	now := time.Now().UTC().Format(time.DateOnly) + " at commit " + commit
	var failures []error
	for _, w := range o.workloads {
		m, err := w.measure(o.rounds, o.time, log)
		failures = append(failures, err)
		m.Measured = now
		fmt.Fprint(out, m.Markdown())
		r.Put(m)
		failures = append(failures, r.Save(o.out))
	}
	if filepath.Clean(o.out) == keptDir {
		failures = append(failures, r.IntoReadme(readmeFile))
	}
	return errors.Join(failures...)
}

// draw writes the pages of a folder again from its figures.
func (o order) draw() error {
	r, err := report.Load(o.out)
	if err != nil {
		return fmt.Errorf("-redraw: %w", err)
	}
	err = r.Draw(o.out)
	if filepath.Clean(o.out) == keptDir {
		err = errors.Join(err, r.IntoReadme(readmeFile))
	}
	return err
}

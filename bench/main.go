package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
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
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// The folders where results go: those of a whole run are kept.
const (
	keptDir = "results"
	tryDir  = "results-quick"
)

// readmeFile is the project's README, seen from the folder of this program.
const readmeFile = "../README.md"

// order is what the flags ask for.
type order struct {
	workloads []workload
	leftOut   []string // which rivals cannot be measured, and why
	rounds    int
	time      time.Duration
	out       string
	redraw    bool
}

// command measures and returns the exit status: 2 where it was called wrongly or a program
// is missing, 1 where a measurement failed.
func command(args []string, out, tell io.Writer) int {
	o, err := parse(args, tell)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(tell, "bench: %v\n", err)
		return 2
	}
	if o.redraw {
		err = o.draw()
	} else {
		err = o.measure(out, tell)
	}
	if err != nil {
		fmt.Fprintf(tell, "bench: %v\n", err)
		return 1
	}
	return 0
}

// parse checks everything that can be checked before anything is measured.
func parse(args []string, tell io.Writer) (o order, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	pattern := f.String("run", "", "measure only workloads whose name matches this `regexp`")
	short := f.Bool("quick", false, "measure only Go libraries on Redis, and without -run only the three main workloads: less than 3 minutes")
	f.IntVar(&o.rounds, "rounds", 3, "measure every subject this many times")
	f.DurationVar(&o.time, "time", 500*time.Millisecond, "length of one measurement; a few workloads need a multiple of it")
	f.StringVar(&o.out, "out", "", "write the figures, the table and the pictures into this `directory`, beside what it has of other workloads\n"+
		"(default "+keptDir+"; "+tryDir+" with -quick or -run)")
	f.BoolVar(&o.redraw, "redraw", false, "measure nothing: make table, pictures and the rows of the README anew from the figures in -out")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.SetOutput(tell)
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
// run leaves out those that need a program, and says nothing about them.
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

// measure keeps the files up to date after every workload. What fails ends nothing but
// itself, and is told at the end.
func (o order) measure(out, tell io.Writer) error {
	r := &report.Results{
		Machine: machine(), Versions: versions(), Load: loadAverage(),
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
		stopOwnServers() // they leave no files
		os.Exit(130)
	})()
	for _, left := range o.leftOut {
		fmt.Fprintf(tell, "bench: left out: %s\n", left)
	}
	now := time.Now().UTC().Format(time.DateOnly) + " at commit " + commit()
	var failures []error
	for _, w := range o.workloads {
		m, err := w.measure(o.rounds, o.time, tell)
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

// draw makes the pages of a folder anew.
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

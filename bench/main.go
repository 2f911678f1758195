package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if runChild() {
		return
	}
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// order is what the flags ask for.
type order struct {
	workloads []workload
	leftOut   []string
	rounds    int
	time      time.Duration
	out       string
	resume    bool
	again     bool
	apart     string // with again: when and at which commit that is
	redraw    bool
	whole     bool // all workloads
}

// command measures and returns the exit status: 2 where it was called wrongly or a
// program is missing, 1 where a measurement failed.
func command(args []string, out, tell io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, help())
		return 0
	case err != nil:
		fmt.Fprintf(tell, "bench: %v\n", err)
		return 2
	}
	r, err := o.begin()
	if err != nil {
		fmt.Fprintf(tell, "bench: %v\n", err)
		return 2
	}
	if err := o.carryOut(r, out, tell); err != nil {
		fmt.Fprintf(tell, "bench: %v\n", err)
		return 1
	}
	return 0
}

// quickDir is where the results of a run go that is not whole, if the caller does not
// say: those that are kept are of a whole one.
const quickDir = "results-quick"

// flags declares them; the order is filled when they are parsed.
func flags(o *order, pattern *string, quick *bool) *flag.FlagSet {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(pattern, "run", "", "measure only workloads whose name matches this `regexp`")
	f.BoolVar(quick, "quick", false, "measure only Go libraries on Redis, in the three main workloads: less than 3 minutes")
	f.IntVar(&o.rounds, "rounds", 3, "measure every subject this many times")
	f.DurationVar(&o.time, "time", 500*time.Millisecond, "length of one measurement; a few workloads need a multiple of it")
	f.StringVar(&o.out, "out", "", "write the table, the raw figures and the plots into this `directory`"+
		fmt.Sprintf(" (default %s; %s with -quick or -run, but for -resume)", resultsDir, quickDir))
	f.BoolVar(&o.resume, "resume", false, "go on with the run whose raw figures are in the directory of -out: measure only what it lacks")
	f.BoolVar(&o.again, "again", false, "with -resume: measure what matches -run anew, at whatever commit the rest was measured")
	f.BoolVar(&o.redraw, "redraw", false, "measure nothing: make table and plots anew from the raw figures in the directory of -out")
	return f
}

func help() string {
	var b strings.Builder
	f := flags(&order{}, new(string), new(bool))
	f.SetOutput(&b)
	fmt.Fprintln(&b, "bench measures holdfast beside other libraries. Flags:")
	f.PrintDefaults()
	return b.String()
}

// parse checks everything that can be checked before anything is measured.
func parse(args []string) (order, error) {
	var o order
	var pattern string
	var quick bool
	f := flags(&o, &pattern, &quick)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.whole = pattern == "" && !quick
	given := make(map[string]bool)
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["out"] {
		o.out = quickDir
		if o.whole || o.resume || o.redraw {
			o.out = resultsDir
		}
	}
	wanted, err := regexp.Compile(pattern)
	switch {
	case err != nil:
		return o, fmt.Errorf("-run: %w", err)
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds: %d is less than 1", o.rounds)
	case o.time < 10*time.Millisecond:
		return o, fmt.Errorf("-time: %v is less than 10ms", o.time)
	case o.out == "":
		return o, errors.New("-out: no directory")
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.again && !(o.resume && given["run"]):
		return o, errors.New("-again goes with -resume and -run")
	case o.redraw && len(given) > 1 && !(len(given) == 2 && given["out"]):
		return o, errors.New("-redraw goes with no other flag than -out")
	case o.redraw:
		return o, nil
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		return o, errors.New("redis-server is not on the PATH")
	}
	return o, o.choose(wanted, quick)
}

// choose leaves out what is not wanted, and the rivals that cannot be measured.
func (o *order) choose(wanted *regexp.Regexp, quick bool) error {
	without := make(map[string][]string) // names by reason
	all := workloads()
	if quick {
		all = quickWorkloads()
	}
	for _, w := range all {
		if !wanted.MatchString(w.name) {
			continue
		}
		w.subjects = slices.DeleteFunc(w.subjects, func(s subject) bool {
			switch {
			case s.needs == nil:
				return false
			case quick:
				return true
			}
			err := s.needs()
			if err == nil {
				return false
			}
			without[err.Error()] = append(without[err.Error()], s.name)
			return true
		})
		o.workloads = append(o.workloads, w)
	}
	for why, names := range without {
		slices.Sort(names)
		o.leftOut = append(o.leftOut, strings.Join(slices.Compact(names), ", ")+": "+why)
	}
	slices.Sort(o.leftOut)
	if len(o.workloads) == 0 {
		return fmt.Errorf("-run: no workload matches %q", wanted)
	}
	return nil
}

// begin makes the directory, and the report that is to be filled or drawn: a new one,
// or that of an earlier run, of which only what it lacks is left to measure.
func (o *order) begin() (*report, error) {
	if o.redraw {
		r, err := loadReport(o.out)
		if err != nil {
			return nil, fmt.Errorf("-redraw: %w", err)
		}
		return r, nil
	}
	r := newReport(o.rounds, o.time)
	r.LeftOut = o.leftOut
	if !o.resume {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return nil, fmt.Errorf("-out: %w", err)
		}
		return r, nil
	}
	before, err := loadReport(o.out)
	if err == nil {
		err = r.goesOn(before, o.again)
	}
	if err != nil {
		return nil, fmt.Errorf("-resume: %w", err)
	}
	if o.again {
		o.apart = r.whenAndWhat()
		return before, nil
	}
	o.workloads = slices.DeleteFunc(o.workloads, func(w workload) bool { return before.has(w.name) })
	return before, nil
}

// carryOut measures, and keeps the files up to date after every workload. What fails
// ends nothing but itself.
func (o *order) carryOut(r *report, out, tell io.Writer) error {
	if o.redraw {
		return errors.Join(r.render(o.out), r.intoReadme(o.out))
	}
	defer stopStores()
	defer stopAgents()
	defer tidyOnSignal()()
	for _, left := range o.leftOut {
		fmt.Fprintf(tell, "bench: left out: %s\n", left)
	}
	fmt.Fprint(out, r.head())
	var failures []error // they are told at the end: what can be measured is
	steps := newProgress(tell, o.workloads, o.rounds)
	for _, w := range o.workloads {
		m, err := w.measure(o.rounds, o.time, steps)
		failures = append(failures, err)
		fmt.Fprint(out, m.lines())
		m.Apart = o.apart
		r.put(m)
		if err := r.save(o.out); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", w.name, err))
		}
	}
	fmt.Fprint(out, r.sideBySide()+r.notes())
	if o.whole {
		failures = append(failures, r.intoReadme(o.out))
	}
	return errors.Join(failures...)
}

// tidyOnSignal has an interrupt stop the rivals' servers, so that their files go,
// before it ends the program. It returns what undoes that.
func tidyOnSignal() (undo func()) {
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			stopStores()
			os.Exit(130)
		case <-over:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}

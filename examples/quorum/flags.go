package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

type options struct {
	time       time.Duration
	goroutines int // of each locker
	lease      time.Duration
	embedded   bool
	guard      bool

	redis string // path of redis-server; "" if the servers are embedded
	why   string // the servers are embedded
}

// guarded says whether nodes that restarted have no vote for a while.
func (o options) guarded() bool { return o.guard && !o.embedded }

const usage = `Usage: quorum [flags]

Counts under a lock on five Redis masters while two of them at a time are killed, restarted empty or paused. The exit status
is 0 if nobody was ever inside together with another (also after Ctrl-C), 1 if somebody was, if nobody got the lock or if
the run broke off, 2 if a flag is bad or the masters could not be started.

Flags:
`

// parseFlags returns the options, or an error that names the flag. For -h it
// prints the usage and returns flag.ErrHelp.
func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("quorum", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.DurationVar(&o.time, "time", 20*time.Second, "how long to count")
	f.IntVar(&o.goroutines, "goroutines", 4, fmt.Sprintf("goroutines of each of the %d lockers", lockers))
	f.DurationVar(&o.lease, "lease", time.Second, "lease of the lock, and for how long a node that restarted has no vote")
	f.BoolVar(&o.embedded, "embedded", false, "use servers inside this program, although redis-server is on the PATH")
	f.BoolVar(&o.guard, "guard", true, "the restart guard; false to see what happens without while a majority restarts")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
	}
	if err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if err := o.check(); err != nil {
		return o, err
	}
	if o.embedded {
		o.why = "as -embedded asks"
	} else {
		o.redis, o.why = findRedis()
		o.embedded = o.redis == ""
	}
	asked := false
	f.Visit(func(f *flag.Flag) { asked = asked || f.Name == "guard" && o.guard })
	if asked && o.embedded {
		return o, fmt.Errorf("-guard: embedded servers have no run id, which the guard needs; they are used %s", o.why)
	}
	return o, nil
}

func (o options) check() error {
	switch {
	case o.time < 100*time.Millisecond || o.time > time.Hour:
		return fmt.Errorf("-time: %v is not from 100ms to 1h", o.time)
	case o.goroutines < 1 || o.goroutines > 256:
		return fmt.Errorf("-goroutines: %d is not from 1 to 256", o.goroutines)
	case o.lease < 200*time.Millisecond || o.lease > 10*time.Second || o.lease%time.Millisecond != 0:
		return fmt.Errorf("-lease: %v is not a whole number of milliseconds from 200ms to 10s", o.lease)
	}
	return nil
}

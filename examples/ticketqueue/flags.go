package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// The values of -guard.
const (
	guardFair  = "fair"
	guardRlock = "rlock"
)

type options struct {
	arrivals             string
	customers, processes int
	redis, guard         string
	lease                time.Duration
	kill                 bool
}

const usage = `Usage: ticketqueue [flags]

Customers of several processes queue for one counter and are served under one distributed lock, first come, first served.
Prints the order of arrival beside the order of service. The exit status is 0 if they agree (also after Ctrl-C), 1 if
somebody was overtaken, lost or served twice or if the day broke off, 2 if the input is bad and nobody came.

Flags:
`

// parseFlags returns the options, or an error that names the flag. For -h it
// prints the usage and returns flag.ErrHelp.
func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("ticketqueue", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.arrivals, "arrivals", "", "CSV `file` of customers with the columns customer,at,service (ms after the start; ms at the counter), such as examples/ticketqueue/arrivals.csv; none: make up customers")
	f.IntVar(&o.customers, "customers", 200, "customers to make up")
	f.IntVar(&o.processes, "processes", 4, "processes to which the customers come")
	f.StringVar(&o.redis, "redis", "", "a real Redis: host:port, or a redis:// or rediss:// (TLS) `URL` with password; none: an embedded server")
	f.StringVar(&o.guard, "guard", guardFair, "fair, or rlock to see what happens under a lock that is not fair")
	f.DurationVar(&o.lease, "lease", time.Second, "lease of the lock: after so long the counter of a killed process is free again, and a silent process counts as dead")
	f.BoolVar(&o.kill, "kill", true, "kill (SIGKILL) one process whose customers wait and one that serves")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		f.SetOutput(out)
		f.PrintDefaults()
	}
	if err != nil {
		return o, err
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case given["arrivals"] && given["customers"]:
		return o, errors.New("-customers: contradicts -arrivals, which brings its own")
	case given["arrivals"] && o.arrivals == "":
		return o, errors.New("-arrivals: is empty")
	case given["redis"] && o.redis == "":
		return o, errors.New("-redis: is empty")
	}
	return o, o.check()
}

func (o options) check() error {
	switch {
	case o.customers < 1 || o.customers > maxCustomers:
		return fmt.Errorf("-customers: %d is not from 1 to %d", o.customers, maxCustomers)
	case o.processes < 1 || o.processes > 64:
		return fmt.Errorf("-processes: %d is not from 1 to 64", o.processes)
	case o.guard != guardFair && o.guard != guardRlock:
		return fmt.Errorf("-guard: %q is neither %s nor %s", o.guard, guardFair, guardRlock)
	case o.lease < 100*time.Millisecond || o.lease > time.Minute || o.lease%time.Millisecond != 0:
		return fmt.Errorf("-lease: %v is not a whole number of milliseconds from 100ms to 1m", o.lease)
	case o.kill && o.processes < 3:
		return errors.New("-kill: needs at least 3 -processes, as two die; -kill=false lets all live")
	}
	return nil
}

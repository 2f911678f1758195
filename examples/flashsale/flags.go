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
	guardLock = "lock"
	guardNone = "none"
)

type options struct {
	orders                string
	buyers, skus, stock   int
	processes, goroutines int
	redis, guard          string
	lease                 time.Duration
	kill                  bool
}

const usage = `Usage: flashsale [flags]

Sells scarce stock to a crowd from several processes at once, each order under the distributed lock of its item, and
checks the books at the end. The exit status is 0 if all is well (also after Ctrl-C), 1 if anything was oversold, lost or
done twice or if the sale broke off, 2 if the input is bad and nothing was sold.

Flags:
`

// parseFlags returns the options, or an error that names the flag. For -h it
// prints the usage and returns flag.ErrHelp.
func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("flashsale", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.orders, "orders", "", "CSV `file` of orders with the columns order,buyer,sku,quantity, such as examples/flashsale/orders.csv; none: make up orders")
	f.IntVar(&o.buyers, "buyers", 2000, "orders to make up, one for each buyer")
	f.IntVar(&o.skus, "skus", 3, "items to make up")
	f.IntVar(&o.stock, "stock", 100, "units in stock of each item")
	f.IntVar(&o.processes, "processes", 4, "processes that sell")
	f.IntVar(&o.goroutines, "goroutines", 16, "goroutines in each process")
	f.StringVar(&o.redis, "redis", "", "a real Redis: host:port, or a redis:// or rediss:// (TLS) `URL` with password; none: an embedded server")
	f.StringVar(&o.guard, "guard", guardLock, "lock, or none to see what happens without")
	f.DurationVar(&o.lease, "lease", 2*time.Second, "lease of the locks: after so long the lock of a killed process is free again")
	f.BoolVar(&o.kill, "kill", false, "kill one process (SIGKILL) inside its critical section; the others take over its orders")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, usage)
			f.SetOutput(out)
			f.PrintDefaults()
		}
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	set := map[string]bool{}
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	for _, made := range []string{"buyers", "skus"} {
		if set["orders"] && set[made] {
			return o, fmt.Errorf("-%s: contradicts -orders, which brings its own", made)
		}
	}
	for name, given := range map[string]string{"orders": o.orders, "redis": o.redis} {
		if set[name] && given == "" {
			return o, fmt.Errorf("-%s: is empty", name)
		}
	}
	return o, o.check()
}

func (o options) check() error {
	for _, n := range []struct {
		flag            string
		value, low, top int
	}{
		{"buyers", o.buyers, 1, 1_000_000},
		{"skus", o.skus, 1, 100_000},
		{"stock", o.stock, 0, 1_000_000_000},
		{"processes", o.processes, 1, 64},
		{"goroutines", o.goroutines, 1, 256},
	} {
		if n.value < n.low || n.value > n.top {
			return fmt.Errorf("-%s: %d is not from %d to %d", n.flag, n.value, n.low, n.top)
		}
	}
	switch {
	case o.guard != guardLock && o.guard != guardNone:
		return fmt.Errorf("-guard: %q is neither %s nor %s", o.guard, guardLock, guardNone)
	case o.lease < 100*time.Millisecond || o.lease > time.Minute || o.lease%time.Millisecond != 0:
		return fmt.Errorf("-lease: %v is not a whole number of milliseconds from 100ms to 1m", o.lease)
	case o.kill && o.processes < 2:
		return errors.New("-kill: needs at least 2 -processes: somebody must take over")
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit statuses.
const (
	exitOK    = 0
	exitWrong = 1 // two were inside together, nothing was shown, or the run broke off
	exitInput = 2 // nothing was counted
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	status, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "quorum: %v\n", err)
	}
	os.Exit(status)
}

// run counts and prints the table. It returns the exit status, and what to say
// about it if there is more to say than the table does.
func run(ctx context.Context, args []string, out io.Writer) (status int, err error) {
	o, err := parseFlags(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK, nil
	}
	if err != nil {
		return exitInput, err
	}
	nodes, err := startNodes(o)
	if err != nil {
		return exitInput, err
	}
	defer stopNodes(nodes)
	introduce(out, o, nodes)

	d := newDrill(o, nodes, out)
	defer d.close()
	if err := d.open(ctx); err != nil {
		return exitInput, err
	}
	broke := d.run(ctx)
	a := d.account(ctx.Err() != nil)
	a.print(out)
	if broke != nil || !a.clean() {
		return exitWrong, broke
	}
	return exitOK, nil
}

func introduce(out io.Writer, o options, nodes []*node) {
	if o.embedded {
		fmt.Fprintf(out, "Five masters: embedded in this program, %s. For demonstration only.\n", o.why)
	} else {
		fmt.Fprintf(out, "Five masters: real ones, by %s.\n", o.redis)
	}
	for _, n := range nodes {
		fmt.Fprintf(out, "  node %d: %s\n", n.number, n.addr)
	}
	switch {
	case o.guarded():
		fmt.Fprintf(out, "Restart guard: on. A node that restarts has no vote for %v.\n", o.lease)
	case o.guard:
		fmt.Fprintln(out, "Restart guard: OFF, as embedded servers have no run id. A node that restarts votes at once.")
	default:
		fmt.Fprintln(out, "Restart guard: OFF, as -guard=false asks. A node that restarts votes at once.")
	}
	switch {
	case o.guarded():
		fmt.Fprintln(out, "Two nodes at a time are killed, restarted empty or paused.")
	case o.guard:
		fmt.Fprintln(out, "Two nodes at a time are killed, restarted or paused. They keep their memory, as there is no guard.")
	default:
		fmt.Fprintf(out, "%d nodes at a time are restarted empty, while somebody holds the lock.\n", majority)
	}
	fmt.Fprintf(out, "%d goroutines of %d lockers count for %v, with a lease of %v.\n\n", lockers*o.goroutines, lockers, o.time, o.lease)
}

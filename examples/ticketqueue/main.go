package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-go/holdfast/examples/internal/redis"
)

// Exit statuses.
const (
	exitOK    = 0
	exitWrong = 1 // somebody was overtaken, lost or served twice, or the day broke off
	exitInput = 2 // nobody came
)

// workerEnv is set in the environment of a process that the parent started.
const workerEnv = "TICKETQUEUE_WORKER"

func main() {
	if os.Getenv(workerEnv) != "" {
		os.Exit(work(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	status, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "ticketqueue: %v\n", err)
	}
	os.Exit(status)
}

// run holds a day and prints the table. It returns the exit status, and what to
// say about it if there is more to say than the table does.
func run(ctx context.Context, args []string, out io.Writer) (status int, err error) {
	o, err := parseFlags(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK, nil
	}
	if err != nil {
		return exitInput, err
	}
	customers := makeCustomers(o.customers)
	if o.arrivals != "" {
		if customers, err = readCustomers(o.arrivals); err != nil {
			return exitInput, err
		}
	}
	at := redis.Server{URL: o.redis}
	if o.redis == "" {
		var stop func()
		if at, stop, err = redis.StartEmbedded(); err != nil {
			return exitInput, err
		}
		defer stop()
	}
	client, err := at.Connect()
	if err != nil {
		return exitInput, fmt.Errorf("-redis: %w", err)
	}
	defer client.Close()
	c := &counter{client: client, id: rand.Text()[:8]}
	defer c.close()

	introduce(out, o, len(customers))
	d := newDay(o, at, c, customers, out)
	began, broke := d.run(ctx)
	if broke != nil && !began {
		return exitInput, broke
	}
	a, err := d.account()
	if err != nil {
		err = fmt.Errorf("no table, as the list of the served cannot be read: %w", err)
		if broke != nil {
			err = fmt.Errorf("%w; %w", broke, err)
		}
		return exitWrong, err
	}
	a.print(out, o.guard)
	if broke != nil || !a.clean() {
		return exitWrong, broke
	}
	return exitOK, nil
}

func introduce(out io.Writer, o options, customers int) {
	fmt.Fprintf(out, "Ticket queue: %d customers come to %d processes, for one counter.\n", customers, o.processes)
	if o.guard == guardFair {
		fmt.Fprintf(out, "Served under the fair lock (a dead holder's is free again after %v).\n", o.lease)
	} else {
		fmt.Fprintf(out, "Served under %s, which is NOT fair (a dead holder's is free again after %v).\n", o.guard, o.lease)
	}
	if o.redis == "" {
		fmt.Fprintln(out, "Redis: embedded in this program, for demonstration only. It is gone at the end and protects nothing")
		fmt.Fprintln(out, "between two runs; use -redis host:port for a real one.")
	}
	fmt.Fprintln(out)
}

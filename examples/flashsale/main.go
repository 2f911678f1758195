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
	exitWrong = 1 // something was oversold, lost or done twice, or the sale broke off
	exitInput = 2 // nothing was sold
)

// workerEnv is set in the environment of a process that the parent started.
const workerEnv = "FLASHSALE_WORKER"

func main() {
	if os.Getenv(workerEnv) != "" {
		os.Exit(work(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	status, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "flashsale: %v\n", err)
	}
	os.Exit(status)
}

// run holds a sale and prints the table. It returns the exit status, and what to
// say about it if there is more to say than the table does.
func run(ctx context.Context, args []string, out *os.File) (status int, err error) {
	o, err := parseFlags(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK, nil
	}
	if err != nil {
		return exitInput, err
	}
	orders := makeOrders(o.buyers, o.skus)
	if o.orders != "" {
		if orders, err = readOrders(o.orders); err != nil {
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

	stock := make(map[string]int)
	for _, order := range orders {
		stock[order.SKU] = o.stock
	}
	shop := &shop{client: client, id: rand.Text()[:8]}
	if err := shop.open(stock); err != nil {
		return exitInput, fmt.Errorf("-redis: %w", err)
	}
	defer shop.close(stock)

	introduce(out, o, len(orders), len(stock))
	s := newSale(o, at, shop.id, orders, out)
	began, broke := s.run(ctx)
	if broke != nil && !began {
		return exitInput, broke
	}
	a, err := shop.audit(s, stock)
	if err != nil {
		err = fmt.Errorf("no table, as the order book cannot be read: %w", err)
		if broke != nil {
			err = fmt.Errorf("%w; %w", broke, err)
		}
		return exitWrong, err
	}
	a.print(out, o.guard != guardNone)
	if broke != nil || !a.clean() {
		return exitWrong, broke
	}
	return exitOK, nil
}

func introduce(out io.Writer, o options, orders, items int) {
	fmt.Fprintf(out, "Flash sale: %d orders for %d items, %d of each in stock.\n", orders, items, o.stock)
	guard := fmt.Sprintf("under a lock for each item (a dead holder's is free again after %v)", o.lease)
	if o.guard == guardNone {
		guard = "WITHOUT any lock"
	}
	fmt.Fprintf(out, "Sold by %d processes × %d goroutines, %s.\n", o.processes, o.goroutines, guard)
	if o.redis == "" {
		fmt.Fprintln(out, "Redis: embedded in this program, for demonstration only. It is gone at the end and protects nothing")
		fmt.Fprintln(out, "between two runs; use -redis host:port for a real one.")
	}
	fmt.Fprintln(out)
}

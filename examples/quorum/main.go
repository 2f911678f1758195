// Quorum counts under a lock on five independent Redis masters. Again and again, one of them is killed and another
// hangs. At the end it says whether two holders were ever inside together.
//
//	go run ./examples/quorum                  20 s on five redis-servers, or on embedded servers if there is none
//	go run ./examples/quorum -guard=false     without the restart guard, while a majority restarts: two get inside
//	go run ./examples/quorum -server=         on five servers inside this program
//
// counter.go shows the work under the lock. masters.go starts and kills the masters.
//
// Nothing is persisted: when a master that was killed is back, it has forgotten all locks. Therefore it has no vote
// for the longest lease. Without this restart guard, a majority that restarts within a lease grants the lock twice, as
// -guard=false shows. Embedded servers have no run ID, which tells of a restart, and so no guard: they keep their
// memory, except with -guard=false.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/multilock"
)

var (
	length     = flag.Duration("time", 20*time.Second, "how long to count")
	lockers    = flag.Int("lockers", 4, "lockers, each with connections of its own to all masters")
	goroutines = flag.Int("goroutines", 4, "goroutines of each locker")
	lease      = flag.Duration("lease", 2*time.Second, "lease of the lock, and the time for which a restarted master has no vote; at least 200ms")
	guard      = flag.Bool("guard", true, "use the restart guard; false shows what happens without it")
	server     = flag.String("server", "redis-server", "`program` of the masters; if it is missing, the servers are embedded")
	port       = flag.Int("port", 0, "first of the five ports of the masters; 0: any")
)

var errOver = errors.New("the time is over")

func main() { demo.Main(run, serve) }

func run(ctx context.Context) error {
	if min(*lockers, *goroutines) < 1 || *lease < 200*time.Millisecond || *port < 0 || *port > 1<<16-nodes {
		return errors.New("-lockers and -goroutines: at least 1; -lease: at least 200ms; -port: 0 to 65531")
	}
	of, guarded := *server, *guard
	if _, err := exec.LookPath(*server); err != nil {
		of, guarded = embedded, false
	}
	masters, err := startMasters(of)
	defer stopMasters(masters)
	if err != nil {
		return err
	}
	fmt.Printf("Five masters: %s on the ports from %d on; restart guard: %v.\n", of, *port, guarded)

	var all []*multilock.Locker
	var clients []rueidis.Client // of the last one
	options := []holdfast.Option{
		holdfast.WithLease(*lease),
		multilock.WithNodeTimeout(*lease / 10), // the most that is allowed: this machine does the work of many
	}
	if !guarded {
		options = append(options, multilock.WithoutRestartGuard())
	}
	for range *lockers {
		clients = nil
		for _, m := range masters {
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.addr()}, ForceSingleClient: true, DisableCache: true})
			if err != nil {
				return fmt.Errorf("master %d: %w", m.number, err)
			}
			defer client.Close()
			clients = append(clients, client)
		}
		locker, err := multilock.New(clients, options...)
		if err != nil {
			return err
		}
		defer locker.Close()
		all = append(all, locker)
	}
	// These masters are new. A service must not claim that at its start: see multilock.Locker.DeclareNothingHeld.
	if err := all[0].DeclareNothingHeld(ctx); err != nil {
		return err
	}

	c, turns := &counter{long: make(chan struct{})}, 0
	limited, cancel := context.WithTimeoutCause(ctx, *length, errOver)
	defer cancel()
	g, counting := demo.NewGroup(limited)
	g.Go(func() (err error) {
		turns, err = disturb(counting, masters, clients, c.long)
		return err
	})
	for _, locker := range all {
		for range *goroutines {
			g.Go(func() error { return c.count(counting, locker) })
		}
	}
	g.Go(func() error { return watch(counting, c, all[0]) })
	if err := g.Wait(); !errors.Is(err, errOver) && ctx.Err() == nil {
		return err
	}
	return c.judge(turns, ctx.Err() != nil)
}

// watch prints the state of the masters each half second.
func watch(ctx context.Context, c *counter, locker *multilock.Locker) error {
	for began := time.Now(); demo.Sleep(ctx, 500*time.Millisecond) == nil; {
		asked, done := context.WithTimeout(ctx, 100*time.Millisecond)
		var states []string
		for _, n := range locker.Nodes(asked) {
			switch {
			case n.Err != nil:
				states = append(states, "away")
			case n.Vote:
				states = append(states, "vote")
			default:
				states = append(states, fmt.Sprintf("no vote for %.1fs", n.Remaining.Seconds()))
			}
		}
		done()
		c.mu.Lock()
		sections, double := c.sections, c.double
		c.mu.Unlock()
		fmt.Printf("%4.1fs  %d sections, %d double holds; masters: %s\n", time.Since(began).Seconds(), sections, double, strings.Join(states, ", "))
	}
	return nil
}

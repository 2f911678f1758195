package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
)

// counter is what the lock guards: a value that a section reads at its beginning and writes at its end.
type counter struct {
	long chan struct{} // to each receive, a section that has just begun and is long

	mu       sync.Mutex // makes one step of reading and one of writing, never one of both
	value    int
	began    *holdfast.Lease // of the section that began last
	sections int             // that have written
	double   int             // that began while another was inside
	lost     int             // leases that ended too early
	missed   int             // calls that too few nodes answered in time
}

// count does one section after another until ctx ends.
func (c *counter) count(ctx context.Context, locker holdfast.Locker) error {
	for ctx.Err() == nil {
		err := locker.Do(ctx, "counter", c.section, holdfast.WaitAtMost(10**lease))
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, holdfast.ErrLost): // the next holder may be inside: the section did not write after that
			c.add(&c.lost)
		case errors.Is(err, holdfast.ErrNotAcquired), errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrUnknown):
			c.add(&c.missed)
		default: // what waiting does not cure
			return err
		}
	}
	return nil
}

// section is the critical section: read, take a moment, write.
func (c *counter) section(ctx context.Context) error {
	lease := holdfast.LeaseFrom(ctx)
	read, err := c.begin(lease)
	if err != nil {
		return err
	}
	if err := demo.Sleep(ctx, c.moment()); err != nil {
		return err
	}
	return c.end(lease, read)
}

// moment is how long a section takes: a few milliseconds, and sometimes a quarter of the lease.
func (c *counter) moment() time.Duration {
	select {
	case c.long <- struct{}{}:
		return *lease / 4
	default:
	}
	if rand.IntN(50) == 0 {
		return *lease / 4
	}
	return time.Millisecond + rand.N(4*time.Millisecond)
}

// begin reads the value. If the section before is still inside, two leases live at this instant: the other one was
// granted earlier, and outlives the look at l.
func (c *counter) begin(l *holdfast.Lease) (read int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := l.Err(); err != nil {
		return 0, err
	}
	if c.began != nil && c.began.Err() == nil {
		c.double++
	}
	c.began = l
	return c.value, nil
}

// end writes the value, unless the lease was lost meanwhile.
func (c *counter) end(l *holdfast.Lease, read int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	c.value = read + 1
	c.sections++
	return nil
}

func (c *counter) add(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// soFar returns the sections and the double holds.
func (c *counter) soFar() (sections, double int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sections, c.double
}

// judge prints what was counted and fails if two were inside together.
func (c *counter) judge(turns int, early bool) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nsections\tcounter\tdouble holds\tleases lost\tcalls failed\tturns of faults\t")
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t\n\n", c.sections, c.value, c.double, c.lost, c.missed, turns)
	w.Flush()
	switch {
	case c.double > 0 || c.value != c.sections:
		return fmt.Errorf("WRONG: %d times two were inside together, and the counter lacks %d sections", c.double, c.sections-c.value)
	case early:
		fmt.Println("Stopped early. So far nobody was inside together with another.")
	case c.sections == 0:
		return errors.New("NOTHING SHOWN: nobody got the lock")
	default:
		fmt.Println("All is well: nobody was inside together with another, and the counter has every section.")
	}
	return nil
}

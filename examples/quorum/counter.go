package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
)

// counter is what the lock guards: a value that a section reads at its beginning and writes at its end.
type counter struct {
	long chan struct{} // a long section that has just begun sends to it, if another goroutine receives

	lost   atomic.Int64 // leases that ended too early
	missed atomic.Int64 // calls that too few nodes answered in time

	mu       sync.Mutex // makes a step of the read and a step of the write, never one step of both
	value    int
	began    *holdfast.Lease // of the section that began last
	sections int             // that have written
	double   int             // sections that began while another was inside
}

// count does one section after another until ctx ends.
func (c *counter) count(ctx context.Context, locker holdfast.Locker) error {
	for ctx.Err() == nil {
		err := locker.Do(ctx, "counter", c.section, holdfast.WaitAtMost(10**lease))
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, holdfast.ErrLost): // the next holder may be inside, but this section wrote nothing after the loss
			c.lost.Add(1)
		case errors.Is(err, holdfast.ErrNotAcquired), errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrUnknown):
			c.missed.Add(1)
		default: // waiting does not help
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
	default:
		if rand.IntN(50) > 0 {
			return time.Millisecond + rand.N(4*time.Millisecond)
		}
	}
	return *lease / 4
}

// begin reads the value. If the section before is still inside, two leases live at this instant: l lived when it was
// checked, and the earlier one lives still.
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

// judge prints what was counted and fails if two were inside together.
func (c *counter) judge(turns int, early bool) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nsections\tcounter\tdouble holds\tleases lost\tcalls failed\tturns of faults\t")
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t\n\n", c.sections, c.value, c.double, c.lost.Load(), c.missed.Load(), turns)
	w.Flush()
	switch {
	case c.double > 0 || c.value != c.sections:
		return fmt.Errorf("WRONG: two were inside together %d times, and the counter lacks %d sections", c.double, c.sections-c.value)
	case early:
		fmt.Println("Stopped early. So far, no two were inside together.")
	case c.sections == 0:
		return errors.New("NOTHING SHOWN: nobody got the lock")
	default:
		fmt.Println("All is well: no two were inside together, and the counter has every section.")
	}
	return nil
}

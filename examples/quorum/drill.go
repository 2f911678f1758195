package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/multilock"
)

const (
	lockers = 4
	key     = "counter"
)

// drill is one run of the program.
type drill struct {
	options options // immutable
	nodes   []*node // immutable
	counter *counter
	picture *picture
	clients []rueidis.Client    // immutable after open
	lockers []*multilock.Locker // immutable after open; the first also tells how the nodes stand

	long   chan struct{}  // a fault that takes from it gets a section that has just begun and is long
	missed atomic.Int64   // waits that ended without the lock
	faults map[string]int // by kind; of the goroutine of the faults
	took   time.Duration
}

func newDrill(o options, nodes []*node, out io.Writer) *drill {
	return &drill{
		options: o, nodes: nodes, counter: &counter{inside: map[lease]bool{}}, picture: newPicture(out),
		long: make(chan struct{}), faults: map[string]int{},
	}
}

// open connects the lockers, and gives the nodes, which are new, their vote. What
// it has opened is left to close also on failure.
func (d *drill) open(ctx context.Context) error {
	options := []multilock.Option{
		multilock.WithLease(d.options.lease),
		multilock.WithNodeTimeout(d.options.lease / 10), // as long as may be: this machine does the work of many
	}
	if !d.options.guarded() {
		options = append(options, multilock.WithoutRestartGuard())
	}
	for range lockers {
		var own []rueidis.Client
		for _, n := range d.nodes {
			client, err := connect(n.addr)
			if err != nil {
				return fmt.Errorf("node %d: %w", n.number, err)
			}
			d.clients, own = append(d.clients, client), append(own, client)
		}
		l, err := multilock.New(own, options...)
		if err != nil {
			return err
		}
		d.lockers = append(d.lockers, l)
	}
	return d.lockers[0].Bootstrap(ctx, multilock.NothingHeld())
}

// connect returns a client with one small connection: there are twenty.
func connect(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true,
		PipelineMultiplex: -1, RingScaleEachConn: 8, ReadBufferEachConn: 32 << 10, WriteBufferEachConn: 32 << 10,
	})
}

// close ends the lockers and then their clients. The nodes are up again.
func (d *drill) close() {
	for _, l := range d.lockers {
		l.Close()
	}
	for _, c := range d.clients {
		c.Close()
	}
}

// run counts until the time is up, ctx ends or an error breaks it off, which it
// returns. All nodes are up then, but for one that could not be started again.
func (d *drill) run(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, d.options.time)
	defer cancel()
	ctx, breakOff := context.WithCancelCause(limited)
	defer breakOff(nil)

	started := time.Now()
	var work sync.WaitGroup
	work.Go(func() { d.bringFaults(ctx, breakOff) })
	for _, l := range d.lockers {
		for range d.options.goroutines {
			work.Go(func() { d.count(ctx, l, breakOff) })
		}
	}
	over := make(chan struct{})
	go func() { // ends when the work is done
		work.Wait()
		close(over)
	}()
	d.watch(over, started)
	d.took = time.Since(started)
	if cause := context.Cause(ctx); cause != context.Cause(limited) {
		return cause
	}
	return nil
}

// count does one section after another.
func (d *drill) count(ctx context.Context, locker *multilock.Locker, breakOff context.CancelCauseFunc) {
	for ctx.Err() == nil {
		err := d.section(ctx, locker)
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, multilock.ErrUnavailable) || errors.Is(err, multilock.ErrUnknown):
			d.missed.Add(1)
		default: // what waiting cannot cure
			breakOff(err)
		}
	}
}

// section counts one up, or fails because it did not get the lock. That the lease
// is lost is no failure: the counter knows.
func (d *drill) section(ctx context.Context, locker *multilock.Locker) error {
	asked := time.Now()
	l, err := locker.Lock(ctx, key)
	if err != nil {
		return err
	}
	if read, ok := d.counter.enter(l, time.Since(asked)); ok {
		d.stay(l)
		d.counter.leave(l, read)
	}
	if err := l.Unlock(ctx); err != nil && !errors.Is(err, multilock.ErrLost) && !errors.Is(err, multilock.ErrUnknown) {
		return err
	}
	return nil
}

// stay takes a moment, mostly a short one; less if the lease is lost.
func (d *drill) stay(l *multilock.Lease) {
	moment := time.Millisecond + rand.N(4*time.Millisecond)
	wanted := false
	select {
	case d.long <- struct{}{}:
		wanted = true
	default:
	}
	if wanted || rand.IntN(50) == 0 {
		moment = d.options.lease / 4
	}
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.Done():
	}
}

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// The faults.
const (
	killed    = "killed"
	restarted = "restarted"
	paused    = "paused"
)

var kinds = []string{killed, restarted, paused}

// bringFaults brings faults upon the nodes until ctx ends. When it returns all are
// up, or it has broken the run off.
func (d *drill) bringFaults(ctx context.Context, breakOff context.CancelCauseFunc) {
	if !d.options.guard {
		d.restartMajorities(ctx, breakOff)
		return
	}
	rest(ctx, d.options.lease/4)
	for next := 0; ctx.Err() == nil; {
		d.forget()
		var both sync.WaitGroup
		for _, i := range rand.Perm(masters)[:masters-majority] {
			kind := kinds[next%len(kinds)]
			next++
			d.faults[kind]++
			both.Go(func() {
				if err := d.suffer(ctx, d.nodes[i], kind); err != nil {
					breakOff(err)
				}
			})
		}
		both.Wait()
		// After this all nodes vote, and no lease that the two have missed is held.
		rest(ctx, d.options.lease*5/4)
	}
}

// forget ends what the picture says of the turn before.
func (d *drill) forget() {
	for _, n := range d.nodes {
		n.mark("")
	}
}

// suffer brings one fault upon a node and takes it away again.
func (d *drill) suffer(ctx context.Context, n *node, kind string) error {
	moment := d.options.lease/2 + rand.N(d.options.lease)
	n.mark(kind)
	switch kind {
	case paused:
		n.server.pause()
		rest(ctx, moment)
		n.server.resume()
		n.mark("")
	case killed:
		n.server.kill()
		rest(ctx, moment)
		return n.startAgain()
	case restarted:
		n.server.kill()
		return n.startAgain()
	}
	return nil
}

// startAgain starts a node that was killed. Real ones have forgotten everything.
func (n *node) startAgain() error {
	if err := n.server.start(); err != nil {
		return fmt.Errorf("node %d cannot be started again: %w", n.number, err)
	}
	n.mark(restarted)
	return nil
}

// restartMajorities restarts a majority of the nodes at once, again and again, when
// somebody has begun a long section: the nodes forget that the lock is held.
func (d *drill) restartMajorities(ctx context.Context, breakOff context.CancelCauseFunc) {
	for {
		select {
		case <-d.long:
		case <-ctx.Done():
			return
		}
		d.forget()
		var all sync.WaitGroup
		for _, i := range rand.Perm(masters)[:majority] {
			d.faults[restarted]++
			all.Go(func() {
				if err := d.suffer(ctx, d.nodes[i], restarted); err != nil {
					breakOff(err)
				}
			})
		}
		all.Wait()
		rest(ctx, d.options.lease/2)
	}
}

// rest waits for so long, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

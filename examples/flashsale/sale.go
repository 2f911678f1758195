package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/redis"
)

const stopTimeout = 10 * time.Second // for the processes to end by themselves

// sale is the parent: it hands out the orders and keeps account of the reports.
// All fields are owned by the goroutine that calls run.
type sale struct {
	options  options
	orders   []order
	setup    setup
	progress *progress

	events  chan event
	alive   []*process
	pending []int // orders that nobody has
	halt    int   // the order during which a process is killed; -1: none
	halted  time.Time

	ready    int  // processes
	stopping bool // no orders are handed out any more
	overdue  <-chan time.Time
	err      error // why the sale broke off

	reported []bool // by order
	double   int    // orders that were placed anew more than once
	waits    []time.Duration
	started  time.Time
	took     time.Duration // until the last report
}

func newSale(o options, at redis.Server, id string, orders []order, out io.Writer) *sale {
	s := &sale{
		options: o, orders: orders,
		setup:    setup{Redis: at, ID: id, Guard: o.guard, Lease: o.lease, Goroutines: o.goroutines},
		progress: newProgress(out, len(orders)),
		events:   make(chan event),
		halt:     -1,
		reported: make([]bool, len(orders)),
	}
	for i := range orders {
		s.pending = append(s.pending, i)
	}
	if o.kill {
		s.halt = halfSold(orders, o.stock)
	}
	return s
}

// halfSold returns the first order that finds about half of its item sold, so
// that there is something to lose; if there is none, the one in the middle.
func halfSold(orders []order, stock int) int {
	asked := map[string]int{}
	for i, o := range orders {
		if asked[o.SKU] += o.Quantity; asked[o.SKU] > stock/2 {
			return i
		}
	}
	return len(orders) / 2
}

// run sells until every order is placed, ctx ends or an error breaks it off, and
// all processes have ended. began is false if no order was handed out.
func (s *sale) run(ctx context.Context) (began bool, err error) {
	for i := range s.options.processes {
		p, err := startProcess(i+1, s.setup, s.events)
		if err != nil {
			s.err = err
			break
		}
		s.alive = append(s.alive, p)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	interrupt := ctx.Done()
	for len(s.alive) > 0 {
		if s.err != nil || ctx.Err() != nil || len(s.waits) == len(s.orders) {
			s.stop()
		}
		s.handOut()
		select {
		case e := <-s.events:
			if ctx.Err() != nil {
				s.stop() // a process may have ended by the same signal
			}
			s.take(e)
		case <-tick.C:
			s.progress.show()
		case <-interrupt:
			interrupt = nil
		case <-s.overdue:
			for _, p := range s.alive {
				s.breakOff(fmt.Errorf("process %d did not end within %v and was killed", p.number, stopTimeout))
				p.kill()
			}
		}
	}
	s.progress.end()
	return !s.started.IsZero(), s.err
}

// handOut gives orders to the processes that have the fewest.
func (s *sale) handOut() {
	for s.ready == s.options.processes && !s.stopping && len(s.pending) > 0 {
		var to *process
		for _, p := range s.alive {
			if !p.killed && (to == nil || len(p.jobs) < len(to.jobs)) {
				to = p
			}
		}
		if to == nil || len(to.jobs) == window(s.options.goroutines) {
			return
		}
		i := s.pending[0]
		s.pending = s.pending[1:]
		to.jobs[i] = true
		to.send(job{Index: i, Order: s.orders[i], Halt: i == s.halt && s.halted.IsZero()})
	}
}

func (s *sale) take(e event) {
	p, r := e.from, e.report
	switch {
	case e.ended != nil:
		s.buried(p, e.ended)
	case r.Failed != "":
		s.breakOff(fmt.Errorf("process %d: %s", p.number, r.Failed))
	case r.Ready:
		if s.ready++; s.ready == s.options.processes {
			s.started = time.Now()
			s.progress.start()
		}
	case r.Inside:
		s.halted = time.Now()
		p.kill()
		o := s.orders[r.Index]
		s.progress.say("Process %d killed inside its critical section, booking order %s (%d of %s).", p.number, o.ID, o.Quantity, o.SKU)
	default:
		s.account(p, r)
	}
}

func (s *sale) account(p *process, r report) {
	delete(p.jobs, r.Index)
	s.took = time.Since(s.started)
	if s.reported[r.Index] {
		if !r.Placed.Found {
			s.double++
		}
		return
	}
	s.reported[r.Index] = true
	s.waits = append(s.waits, r.Placed.Wait)
	s.progress.add(r.Placed.Units)
	if r.Index == s.halt && !s.halted.IsZero() {
		s.progress.say("Process %d has placed order %s, %v after the kill.", p.number, s.orders[r.Index].ID, time.Since(s.halted).Round(time.Millisecond))
	}
}

// buried gives the orders of a process that has ended to the others.
func (s *sale) buried(p *process, ended error) {
	s.alive = slices.DeleteFunc(s.alive, func(q *process) bool { return p == q })
	if s.stopping {
		return
	}
	if s.started.IsZero() {
		s.breakOff(fmt.Errorf("process %d did not start: %w", p.number, ended))
		return
	}
	orphans := slices.Sorted(maps.Keys(p.jobs))
	s.pending = append(orphans, s.pending...)
	s.progress.say("Process %d is gone (%v). The others take over its %d unfinished orders.", p.number, ended, len(orphans))
	if len(s.alive) == 0 {
		s.breakOff(errors.New("no process is left"))
	}
}

func (s *sale) breakOff(why error) {
	if s.err == nil {
		s.err = why
	}
}

// stop tells the processes to end.
func (s *sale) stop() {
	if s.stopping {
		return
	}
	s.stopping = true
	s.overdue = time.After(stopTimeout)
	for _, p := range s.alive {
		p.in.Close()
	}
}

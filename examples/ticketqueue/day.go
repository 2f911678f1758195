package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/redis"
)

const (
	stopTimeout = 10 * time.Second       // for the processes to end by themselves
	glance      = 500 * time.Microsecond // between two looks for a newcomer in the queue
	never       = time.Hour              // for a timer that has nothing to wait for
)

// place is how far a customer is, as far as was reported.
type place int

const (
	absent    place = iota // has not come
	coming                 // was sent to its process
	waiting                // stands in the queue
	atCounter              // has the turn
	through                // was served
)

// visit is what is known of a customer.
type visit struct {
	place   place
	process *process      // nil: absent
	gone    bool          // the process died, or the customer had none to go to
	wait    time.Duration // from atCounter on
}

// day is the parent: it has the customers come, one after the other, and keeps
// account of the reports. All fields are owned by the goroutine that calls run.
type day struct {
	options   options
	customers []customer
	setup     setup
	counter   *counter
	out       io.Writer
	random    *rand.Rand

	events chan event
	alive  []*process

	visits  []visit
	next    int             // the first customer that is absent
	owners  map[string]bool // everybody who was ever seen at the end of the queue
	settled int             // customers that are through or gone
	served  int             // customers that are through
	held    int             // the customer whose service waits for the death of a process; -1: none
	killed  struct {
		waiting, serving bool      // processes whose customers wait, one that serves
		serveAt          time.Time // of the latter, until the next customer is served
	}

	ready    int // processes
	started  time.Time
	stopping bool // nobody comes any more
	overdue  <-chan time.Time
	err      error // why the day broke off
}

func newDay(o options, at redis.Server, c *counter, customers []customer, out io.Writer) *day {
	return &day{
		options: o, customers: customers, counter: c, out: out,
		setup:  setup{Redis: at, ID: c.id, Guard: o.guard, Lease: o.lease},
		random: rand.New(rand.NewPCG(3, 4)),
		events: make(chan event),
		visits: make([]visit, len(customers)),
		owners: map[string]bool{},
		held:   -1,
	}
}

// run lets the customers come until all are through or gone, ctx ends or an error
// breaks it off, and all processes have ended. began is false if nobody came.
func (d *day) run(ctx context.Context) (began bool, err error) {
	for i := range d.options.processes {
		p, err := startProcess(i+1, d.setup, d.events)
		if err != nil {
			d.err = err
			break
		}
		d.alive = append(d.alive, p)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	timer := time.NewTimer(never)
	defer timer.Stop()
	interrupt := ctx.Done()
	for len(d.alive) > 0 {
		if d.err != nil || ctx.Err() != nil || d.settled == len(d.customers) {
			d.stop()
		}
		timer.Reset(d.arrivals())
		select {
		case e := <-d.events:
			if ctx.Err() != nil {
				d.stop() // a process may have ended by the same signal
			}
			d.take(e)
		case <-timer.C:
		case <-tick.C:
			d.tell()
		case <-interrupt:
			interrupt = nil
		case <-d.overdue:
			for _, p := range d.alive {
				d.breakOff(fmt.Errorf("process %d did not end within %v and was killed", p.number, stopTimeout))
				p.kill()
			}
		}
	}
	return !d.started.IsZero(), d.err
}

// arrivals has the next customer come if it is due and the one before it stands in
// the queue. It returns after how long it is to be called again.
func (d *day) arrivals() time.Duration {
	if d.started.IsZero() || d.stopping {
		return never
	}
	if d.next > 0 && d.visits[d.next-1].place == coming && !d.visits[d.next-1].gone {
		d.lookForNewcomer()
		return glance
	}
	if d.next == len(d.customers) {
		return never
	}
	c := d.customers[d.next]
	if wait := time.Until(d.started.Add(c.At)); wait > 0 {
		return wait
	}
	to := slices.DeleteFunc(slices.Clone(d.alive), func(p *process) bool { return p.killed })
	if len(to) == 0 {
		return never // the last event of the dead says so
	}
	v := &d.visits[d.next]
	v.place, v.process = coming, to[d.random.IntN(len(to))]
	v.process.send(order{Customer: d.next, Service: c.Service})
	d.next++
	return glance
}

// lookForNewcomer looks whether the customer that comes has become the last in
// the queue. Nobody else comes at the time.
func (d *day) lookForNewcomer() {
	if d.options.guard != guardFair {
		return // its process says that it asks
	}
	owner, err := d.counter.last(context.Background())
	if err != nil {
		d.breakOff(err)
		return
	}
	if owner != "" && !d.owners[owner] {
		d.owners[owner] = true
		d.visits[d.next-1].place = waiting
	}
}

func (d *day) take(e event) {
	p, r := e.from, e.report
	v := &d.visits[r.Customer]
	switch {
	case e.ended != nil:
		d.buried(p, e.ended)
	case r.Failed != "":
		d.breakOff(fmt.Errorf("process %d: %s", p.number, r.Failed))
	case r.Step == ready:
		if d.ready++; d.ready == d.options.processes {
			d.started = time.Now()
		}
	case r.Step == asks && d.options.guard != guardFair:
		v.place = waiting
	case r.Step == turn:
		v.place, v.wait = atCounter, r.Wait
		d.itsTurn(r.Customer)
	case r.Step == served:
		v.place = through
		d.served++
		d.settled++
	}
}

// tell is the progress.
func (d *day) tell() {
	if !d.started.IsZero() {
		fmt.Fprintf(d.out, "%.0fs: %d of %d customers have come, %d are served.\n",
			time.Since(d.started).Seconds(), d.next, len(d.customers), d.served)
	}
}

func (d *day) breakOff(why error) {
	if d.err == nil {
		d.err = why
	}
}

// stop tells the processes to end.
func (d *day) stop() {
	if d.stopping {
		return
	}
	d.stopping = true
	d.overdue = time.After(stopTimeout)
	for _, p := range d.alive {
		p.in.Close()
	}
}

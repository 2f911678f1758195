package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// itsTurn lets the customer be served, unless it is time to kill somebody.
func (d *day) itsTurn(i int) {
	p := d.visits[i].process
	if at := d.killed.serveAt; !at.IsZero() && !p.killed {
		fmt.Fprintf(d.out, "%s is served next, %v after the kill.\n", d.customers[i].Name, time.Since(at).Round(time.Millisecond))
		d.killed.serveAt = time.Time{}
	}
	if d.options.kill && !d.killed.waiting && 4*d.served >= len(d.customers) {
		if other := d.queuesBehind(p); other != nil {
			d.killed.waiting, d.held = true, i
			other.kill()
			return // its end lets the customer go on
		}
	}
	if d.options.kill && !d.killed.serving && 2*d.served >= len(d.customers) && d.mayDie(p) {
		d.killed.serving, d.killed.serveAt = true, time.Now()
		p.kill()
		return
	}
	p.send(order{Customer: i, Go: true})
}

// queuesBehind returns a process other than p whose customers wait, nil if there
// is none.
func (d *day) queuesBehind(p *process) *process {
	for _, other := range d.alive {
		if other != p && d.mayDie(other) && len(d.customersOf(other, waiting)) > 0 {
			return other
		}
	}
	return nil
}

// mayDie says whether a process can be killed now: others must go on, and a
// customer that comes must not vanish half-way to the queue, where it could be
// taken for the next.
func (d *day) mayDie(p *process) bool {
	newest := d.visits[d.next-1]
	return !p.killed && len(d.alive) > 1 && (newest.place != coming || newest.process != p)
}

// buried takes the customers of a process that has ended out of the account.
func (d *day) buried(p *process, ended error) {
	d.alive = slices.DeleteFunc(d.alive, func(q *process) bool { return p == q })
	if d.stopping {
		return
	}
	if d.started.IsZero() {
		d.breakOff(fmt.Errorf("process %d did not start: %w", p.number, ended))
		return
	}
	queued, at := d.customersOf(p, waiting), d.customersOf(p, atCounter)
	for _, i := range slices.Concat(d.customersOf(p, coming), queued, at) {
		d.visits[i].gone = true
		d.settled++
	}
	fmt.Fprintf(d.out, "Process %d is gone (%v)", p.number, ended)
	for _, i := range at {
		fmt.Fprintf(d.out, " while it served %s", d.customers[i].Name)
	}
	fmt.Fprintf(d.out, "; in the queue it had %s.\n", d.names(queued))
	if d.held >= 0 {
		d.visits[d.held].process.send(order{Customer: d.held, Go: true})
		d.held = -1
	}
	if len(d.alive) == 0 {
		d.breakOff(errors.New("no process is left"))
	}
}

func (d *day) customersOf(p *process, at place) (found []int) {
	for i, v := range d.visits[:d.next] {
		if v.process == p && v.place == at && !v.gone {
			found = append(found, i)
		}
	}
	return found
}

// names lists customers, or the first of many.
func (d *day) names(of []int) string {
	const most = 6
	var names []string
	for _, i := range of[:min(most, len(of))] {
		names = append(names, d.customers[i].Name)
	}
	switch {
	case len(of) == 0:
		return "nobody"
	case len(of) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(of)-most)
	}
	return strings.Join(names, ", ")
}

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// drawAll draws the plots of a report into dir: the medians of its rounds. What was
// not measured is not drawn.
func (r *report) drawAll(dir string) error {
	for _, page := range []struct {
		name string
		make func() ([]drawing, error)
	}{
		{"main", func() ([]drawing, error) { return r.only(mainNames()).barPage("cycles/s", "cycles/s") }},
		{"throughput", func() ([]drawing, error) { return r.barPage("cycles/s", "cycles/s") }},
		{"latency", r.latencies},
		{"commands", func() ([]drawing, error) { return r.barPage("commands/cycle", "Redis commands per cycle") }},
		{"fairness", func() ([]drawing, error) {
			return r.barPage("Jain of goroutines", "Jain's index over goroutines: 1 if all get the same")
		}},
		{"queues", r.queueCosts},
		{"held", r.heldCosts},
		{"sale", r.saleWaits},
	} {
		drawings, err := page.make()
		if err != nil {
			return err
		}
		if err := drawPage(dir, page.name, drawings); err != nil {
			return err
		}
	}
	return nil
}

// only is a report of fewer workloads.
func (r *report) only(names []string) *report {
	less := &report{}
	for _, m := range r.Workloads {
		if slices.Contains(names, m.Name) {
			less.Workloads = append(less.Workloads, m)
		}
	}
	return less
}

// barsOf are the medians of a figure, one for each subject that has it.
func (m measured) barsOf(figure string) (all []bar) {
	for _, s := range m.workload.subjects {
		if v := median(m.values(of(s.name, figure))); !math.IsNaN(v) {
			all = append(all, bar{s.name, v})
		}
	}
	return all
}

// barPage has bars for each workload that knows the figure and has a rival.
func (r *report) barPage(figure, unit string) (all []drawing, err error) {
	for _, m := range r.Workloads {
		values := m.barsOf(figure)
		if len(values) < 2 {
			continue
		}
		p, err := bars(m.Name, unit, values)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// latencies has lines of the quantiles for each workload with several libraries.
func (r *report) latencies() (all []drawing, err error) {
	for _, m := range r.Workloads {
		var drawn []line
		for _, s := range m.workload.subjects {
			l := line{name: s.name}
			for i, q := range quantiles {
				if v := median(m.values(of(s.name, q.name))); v > 0 {
					l.points = append(l.points, plotter.XY{X: float64(i), Y: v})
				}
			}
			if len(l.points) == len(quantiles) {
				drawn = append(drawn, l)
			}
		}
		if len(drawn) < 2 {
			continue
		}
		p, err := lines(m.Name, "µs from asking to having the lock", "", drawn) // a name at a logarithmic y axis would take half the room
		if err != nil {
			return nil, err
		}
		var names []string
		for _, q := range quantiles {
			names = append(names, strings.Fields(q.name)[1])
		}
		p.NominalX(names...)
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, shortLogTicks{}
		all = append(all, p)
	}
	return all, nil
}

// queueCosts are lines of what a hand-over costs the server, by the queue's length.
func (r *report) queueCosts() (all []drawing, err error) {
	for _, m := range r.Workloads {
		if !strings.HasPrefix(m.Name, "fair/queues") {
			continue
		}
		for _, figure := range []string{"server CPU µs/cycle", "inner commands/cycle"} {
			var points plotter.XYs
			for _, s := range m.workload.subjects {
				var length int
				if _, err := fmt.Sscanf(s.name, queueName, &length); err != nil {
					return nil, err
				}
				if v := median(m.values(of(s.name, figure))); !math.IsNaN(v) {
					points = append(points, plotter.XY{X: float64(length), Y: v})
				}
			}
			if len(points) == 0 {
				continue
			}
			p, err := lines("fair, no hand-over", "waiters", figure, []line{{fairStraightName, points}})
			if err != nil {
				return nil, err
			}
			p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, shortLogTicks{}
			p.Y.Min = 0
			all = append(all, p)
		}
	}
	return all, nil
}

// saleWaits are lines of the waits of a flash sale, by its rate.
func (r *report) saleWaits() (all []drawing, err error) {
	for _, m := range r.Workloads {
		var drawn []line
		for _, s := range m.workload.subjects {
			l := line{name: s.name}
			for rate := float64(saleFirst); rate < saleLast; rate *= saleGrowth {
				if v := median(m.values(of(s.name, fmt.Sprintf(saleFigure, int(rate))))); v > 0 {
					l.points = append(l.points, plotter.XY{X: rate, Y: v})
				}
			}
			if len(l.points) > 0 {
				drawn = append(drawn, l)
			}
		}
		if len(drawn) == 0 {
			continue
		}
		p, err := lines(m.Name, "customers/s, to their p99 wait in ms", "", drawn)
		if err != nil {
			return nil, err
		}
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, shortLogTicks{}
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, shortLogTicks{}
		all = append(all, p)
	}
	return all, nil
}

// heldCosts are bars of what held leases cost.
func (r *report) heldCosts() (all []drawing, err error) {
	for _, m := range r.Workloads {
		for _, figure := range []string{"bytes/lease", "client CPU µs/renewal", "server CPU µs/renewal"} {
			values := m.barsOf(figure)
			if len(values) == 0 {
				continue
			}
			p, err := bars(m.Name, figure, values)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
}

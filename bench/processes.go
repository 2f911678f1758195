package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/rlock"
)

// crew is how many goroutines each process has; all want one key.
type crew []int

// processes is a key that several processes want.
//
// Ideal is that the processes take turns, so that each is without service for
// one turn of every other. A turn with local hand-over is its tenure, or one
// section if that is longer; without it, a turn is one cycle as measured.
func processes(count, goroutines int, section time.Duration) workload {
	c := crew(slices.Repeat([]int{goroutines}, count))
	work := workload{
		name: fmt.Sprintf("processes/%d × %d × %v", count, goroutines, section),
		subjects: []subject{
			c.subject(holdfastName, holdfastName, section),
			c.subject(noHandoverName, noHandoverName, section),
			c.subject(rueidisName, rueidisName, section),
		},
	}
	const speed, sent, fair, gap = "cycles/s", "commands/cycle", "Jain's index", "longest without service ÷ ideal"
	toRival := target{}
	if section == 0 {
		toRival = atLeast(50)
	}
	work.figures = []figure{
		{name: speed, value: of(holdfastName, speed)},
		{"÷ through Redis", target{}, ratio(holdfastName, noHandoverName, speed)},
		{"÷ rueidislock", toRival, ratio(holdfastName, rueidisName, speed)},
		{sent, atMost(4), of(holdfastName, sent)},
		{fair, atLeast(0.95), of(holdfastName, fair)},
		{gap, atMost(3), of(holdfastName, gap)},
	}
	for _, other := range []string{noHandoverName, rueidisName} {
		for _, name := range []string{sent, fair, gap} {
			work.figures = append(work.figures, figure{name: name + ", " + other, value: of(other, name)})
		}
	}
	return work
}

// oneHot is one process with many goroutines beside others with one or two
// each, compared with as many processes that have equally many, and with the
// one alone, by the cycles of all.
func oneHot(count, goroutines, hot int) workload {
	few := make(crew, count)
	for i := range few {
		few[i] = 1 + i%2
	}
	few[0] = hot
	const beside, even, alone, speed = "beside few", "even", "alone", "cycles/s"
	return workload{
		name: fmt.Sprintf("processes/one of %d beside %d of 1 or 2", hot, count-1),
		subjects: []subject{
			few.subject(beside, holdfastName, 0),
			crew(slices.Repeat([]int{goroutines}, count)).subject(even, holdfastName, 0),
			crew{hot}.subject(alone, holdfastName, 0),
		},
		figures: []figure{
			{name: speed, value: of(beside, speed)},
			{fmt.Sprintf("÷ %d × %d", count, goroutines), atLeast(0.9), ratio(beside, even, speed)},
			{fmt.Sprintf("÷ the %d alone", hot), target{}, ratio(beside, alone, speed)},
			{"share of the hot process", target{}, of(beside, "share of the first process")},
		},
	}
}

func (c crew) subject(name, library string, section time.Duration) subject {
	return subject{name: name, rival: library == rueidisName, run: func(s *server, d time.Duration) (sample, error) {
		d = max(d, 100*section) // some turns for everybody
		var children []*child
		defer func() {
			for _, child := range children {
				child.release()
			}
			for _, child := range children {
				child.end()
			}
		}()
		for i, goroutines := range c {
			child, err := startChild(childTask{s.addr, library, place{i, len(c), goroutines}, section, d})
			if err != nil {
				return nil, err
			}
			children = append(children, child)
		}
		var results []childResult
		var used float64
		sent, err := s.callsDuring(func() (err error) {
			used, err = s.cpuDuring(func() (err error) {
				results, err = together(children)
				return err
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		return c.evaluate(results, sent.sent(), used, library, d), nil
	}}
}

// muster is how long it takes at most to tell all children when to begin.
const muster = 100 * time.Millisecond

// together lets the children work at the same time.
func together(children []*child) ([]childResult, error) {
	at := time.Now().Add(muster)
	for _, c := range children {
		if err := c.begin(at); err != nil {
			return nil, err
		}
	}
	var results []childResult
	for _, c := range children {
		r, err := c.result()
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

func (c crew) evaluate(results []childResult, sent int, serverCPU float64, library string, d time.Duration) sample {
	var all, cycles, clientCPU float64
	var shares []float64
	var gap, section time.Duration
	for _, r := range results {
		all += float64(r.All)
		cycles += float64(r.Cycles)
		clientCPU += r.CPU
		shares = append(shares, float64(r.Cycles))
		gap, section = max(gap, r.Gap), max(section, r.Section)
	}
	turn := time.Duration(float64(d) / cycles)
	if library == holdfastName {
		turn = max(rlock.DefaultLocalHandover, section)
	}
	got := sample{
		"cycles/s":                   cycles / d.Seconds(),
		"commands/cycle":             float64(sent) / all,
		"Jain's index":               jain(shares),
		"server CPU µs/cycle":        serverCPU / all * 1e6,
		"client CPU µs/cycle":        clientCPU / all * 1e6,
		"longest without service ms": ms(gap),
		"share of the first process": shares[0] / cycles,
	}
	if len(c) > 1 {
		got["longest without service ÷ ideal"] = gap.Seconds() / (float64(len(c)-1) * turn.Seconds())
	}
	return got
}

package main

import (
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/holdfast-go/holdfast/bench/report"
	"github.com/holdfast-go/holdfast/multilock"
)

// quorum runs the nodes of one.
var quorum = independent(masters)

const (
	masters = 5
	// farTrip is what the distance to each node adds to a round trip.
	farTrip = 2 * time.Millisecond
	// hung is how many nodes hang: the most that a quorum allows.
	hung = masters / 2
	// noticed is the time in which certainly enough calls to a node that hangs time out.
	noticed = 6 * multilock.DefaultNodeTimeout
)

// far is one goroutine that locks and unlocks on a quorum of distant nodes, compared with rlock
// on one such node. First all nodes answer. Then two of them hang: measured are the very first
// lock and those after the hang is known, and also the first lock of a locker that has made no
// call before. redsync does the same on nodes of its own.
//
// Latencies are medians, of Lock, and of Lock and Unlock together (cycle).
func far() workload {
	silentMultilock := func(t task) locker { return openOurs(t, newMultilock) }
	return workload{
		name: fmt.Sprintf("quorum/%v", farTrip),
		subjects: []subject{
			{"multilock", "multilock", quorum, farRun(libraries["multilock"].open, silentMultilock)},
			{"holdfast", "holdfast", independent(1), farRun(libraries["holdfast"].open, nil)},
			{"redsync", "redsync", quorum, farRun(openRedsync, openRedsync)},
		},
	}
}

// farRun opens one locker that is used and, on a quorum, another that makes its first call while nodes hang.
func farRun(used, silent func(task) locker) measurement {
	return func(st store, _ string, d time.Duration) (report.Sample, error) {
		var t task
		for _, addr := range st.addrs() {
			proxy, end := delay(addr, farTrip)
			defer end()
			t.Addrs = append(t.Addrs, proxy)
		}
		l := used(t)
		defer l.close()
		timed(l, d/5)
		up := timed(l, d)
		lock, cycle := median(up.lock), median(up.cycle)
		got := report.Sample{"lock ms": lock, "cycle ms": cycle}
		if silent == nil {
			return got, nil
		}
		fresh := silent(t)
		defer fresh.close()
		nodes := st.(*deployment)
		for _, s := range nodes.masters[:hung] {
			defer s.Kill() // before the clients close: they wait long for a node that hangs
			s.Pause()
		}
		check(nodes.failure)
		learning, known, met := timed(l, noticed), timed(l, d), timed(fresh, 0)
		got["lock ms, two hang"], got["cycle ms, two hang"] = median(known.lock), median(known.cycle)
		got["lock, hang ÷ none"], got["cycle, hang ÷ none"] = median(known.lock)/lock, median(known.cycle)/cycle
		got["first lock, hang not known: ms more"] = learning.lock[0] - lock
		got["slowest until known: ms more"] = slices.Max(learning.cycle) - cycle
		got["first lock of a new locker: ms more"] = met.lock[0] - lock
		return got, nil
	}
}

func median(values []float64) float64 {
	return stat.Quantile(0.5, stat.Empirical, slices.Sorted(slices.Values(values)), nil)
}

// latencies are those of cycles one after the other, in ms.
type latencies struct{ lock, cycle []float64 }

// timed makes cycles for d, but at least one.
func timed(l locker, d time.Duration) (all latencies) {
	cycle := l.cycle("own:0")
	for end := time.Now().Add(d); ; {
		var had time.Time
		asked := time.Now()
		check(cycle(func() { had = time.Now() }))
		over := time.Now()
		all.lock = append(all.lock, ms(had.Sub(asked)))
		all.cycle = append(all.cycle, ms(over.Sub(asked)))
		if over.After(end) {
			return all
		}
	}
}

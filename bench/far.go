package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/holdfast-go/holdfast/bench/report"
	"github.com/holdfast-go/holdfast/multilock"
)

const (
	// masters is how many independent nodes a quorum is of.
	masters = 5
	// farTrip is what the way to each node adds to a round trip.
	farTrip = 2 * time.Millisecond
	// hung is how many nodes stand still, the most that a quorum allows.
	hung = masters / 2
	// noticed is when surely enough calls to a node that hangs have timed out.
	noticed = 6 * multilock.DefaultNodeTimeout
)

// far is one goroutine that locks and unlocks on a quorum whose nodes are a way off, compared
// with rlock on one such node; first with all nodes, then while two of them hang: the very
// first lock, and those from when the hang is known. The hang is also met by a locker that has
// made no call before. redsync does the same on nodes of its own.
//
// Latency is that of Lock, and of both Lock and Unlock (cycle), in the median.
func far() workload {
	silentMultilock := func(t task) (locker, error) { return openMultilock(t) }
	return workload{
		name: fmt.Sprintf("quorum/%v", farTrip),
		subjects: []subject{
			{"multilock", "multilock", masters, farRun(libraries["multilock"].open, silentMultilock)},
			{"holdfast", "holdfast", 1, farRun(libraries["holdfast"].open, nil)},
			{"redsync", "redsync", masters, farRun(openRedsync, openRedsync)},
		},
	}
}

// farRun opens one locker that is used and, on a quorum, another that is first when nodes hang.
func farRun(used, silent func(task) (locker, error)) func(store, time.Duration) (report.Sample, error) {
	return func(st store, d time.Duration) (report.Sample, error) {
		var t task
		for _, addr := range st.addrs() {
			p, err := delay(addr, farTrip)
			if err != nil {
				return nil, err
			}
			defer p.close()
			t.Addrs = append(t.Addrs, p.addr())
		}
		l, err := used(t)
		if err != nil {
			return nil, err
		}
		defer l.close()
		if _, err := timed(l, d/5); err != nil {
			return nil, err
		}
		up, err := timed(l, d)
		if err != nil {
			return nil, err
		}
		lock, cycle := median(up.lock), median(up.cycle)
		got := report.Sample{"lock ms": lock, "cycle ms": cycle}
		if silent == nil {
			return got, nil
		}
		fresh, err := silent(t)
		if err != nil {
			return nil, err
		}
		defer fresh.close()
		defer st.(nodes).kill() // a client waits long for the end of a connection to a node that hangs
		for _, s := range st.(nodes)[:hung] {
			if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				return nil, err
			}
		}
		learning, err := timed(l, noticed)
		if err != nil {
			return nil, err
		}
		known, err := timed(l, d)
		if err != nil {
			return nil, err
		}
		met, err := timed(fresh, 0)
		got["lock ms, two hang"], got["cycle ms, two hang"] = median(known.lock), median(known.cycle)
		got["lock, hang ÷ none"], got["cycle, hang ÷ none"] = median(known.lock)/lock, median(known.cycle)/cycle
		got["first lock, hang not known: ms more"] = learning.lock[0] - lock
		got["slowest until known: ms more"] = slices.Max(learning.cycle) - cycle
		got["first lock of a new locker: ms more"] = met.lock[0] - lock
		return got, err
	}
}

// kill ends the processes alone. stop must follow.
func (all nodes) kill() {
	for _, s := range all {
		_ = s.cmd.Process.Kill() // fails only if the process has ended already
	}
}

func median(values []float64) float64 {
	return stat.Quantile(0.5, stat.Empirical, slices.Sorted(slices.Values(values)), nil)
}

// latencies are those of cycles one after the other, in ms.
type latencies struct{ lock, cycle []float64 }

// timed makes cycles for d, at least one.
func timed(l locker, d time.Duration) (all latencies, err error) {
	cycle := l.cycle("own:0")
	for end := time.Now().Add(d); ; {
		var had time.Time
		asked := time.Now()
		if err := cycle(func() { had = time.Now() }); err != nil {
			return all, err
		}
		over := time.Now()
		all.lock = append(all.lock, ms(had.Sub(asked)))
		all.cycle = append(all.cycle, ms(over.Sub(asked)))
		if over.After(end) {
			return all, nil
		}
	}
}

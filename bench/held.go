package main

import (
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
)

const (
	// heldLease is shorter than usual, so that renewals are frequent: every 2 s.
	heldLease = 6 * time.Second
	// heldTime is how many times longer than others this workload lasts.
	heldTime = 12
	// inFlight is how many calls are under way at once where keys are taken, and where a call
	// of its own renews each lease.
	inFlight = 64
)

// held is many keys that are held, with leases of the given length that are renewed every
// third of it.
//
// CPU per renewal is compared with a program that renews each lease by a bare script of its
// own to each node, 64 calls at a time. Bytes are heap and stacks that came with the leases,
// including their keys and owners; of Java only the heap. Calls, renewals and CPU of the server
// are those of one node.
func held(name string, leases int, length time.Duration, start func(*starter) *deployment, libraries ...string) workload {
	return workload{name, each(libraries, start, func(st store, library string, d time.Duration) (report.Sample, error) {
		interval := length / 3
		intervals := max(1, int(math.Round(float64(heldTime*d)/float64(interval))))
		t := task{Role: "keep", Library: library, Count: leases, Lease: length, Duration: time.Duration(intervals) * interval}
		workers := fleet{inFlight}.start(st, t)
		defer workers.end()
		results, did := workers.observed(st)
		nodes := float64(len(st.addrs()))
		renewals, calls := float64(did.calls["pexpire"]+did.calls["pexpireat"])/nodes, float64(did.calls["evalsha"])/nodes
		got := report.Sample{
			"client CPU µs/renewal":           results[0].CPU / renewals * 1e6,
			"server CPU µs/renewal":           did.cpu / nodes / renewals * 1e6,
			"renewals per lease and interval": renewals / float64(leases*intervals),
			"renewals/call":                   renewals / calls,
			"calls/s":                         calls / t.Duration.Seconds(),
			"longest script ms":               did.longest,
		}
		maps.Copy(got, results[0].Figures)
		if start == nil {
			size := must(st.(*deployment).masters[0].TryDo("DBSIZE"))
			if left := must(size.AsInt64()); left < int64(leases) {
				return got, fmt.Errorf("%w: of %d leases %d were lost", errIncomplete, leases, int64(leases)-left)
			}
		}
		return got, nil
	})}
}

func prepareKeep(t task) job {
	l := t.openWarm()
	leases := make([]kept, t.Count)
	before := memoryNow()
	check(inParallel(inFlight, t.Count, func(i int) (err error) {
		leases[i], err = l.(keeper).keep(fmt.Sprintf("held:%d", i))
		return err
	}))
	each := memoryNow().since(before, t.Count)
	return func(float64) result {
		end := time.Now().Add(t.Duration)
		if one, ok := l.(*singles); ok { // its leases do not renew themselves
			for time.Now().Before(end) {
				next := time.Now().Add(t.Lease / 3)
				check(one.renew(leases))
				time.Sleep(time.Until(next))
			}
		}
		time.Sleep(time.Until(end))
		for _, l := range leases {
			check(l.Err())
		}
		return result{Figures: report.Sample{"bytes/lease": each.heap + each.stacks, "goroutines/lease": each.goroutines}}
	}
}

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
		workers, end, err := fleet{inFlight}.start(st, t)
		defer end()
		if err != nil {
			return nil, err
		}
		results, did, err := observed(st, workers)
		if err != nil {
			return nil, err
		}
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
			size, err := st.(*deployment).masters[0].TryDo("DBSIZE")
			if err != nil {
				return got, err
			}
			if left, err := size.AsInt64(); err != nil || left < int64(leases) {
				return got, fmt.Errorf("%w: of %d leases %d were lost", errIncomplete, leases, int64(leases)-left)
			}
		}
		return got, nil
	})}
}

func prepareKeep(t task) (job, error) {
	l, err := t.openWarm()
	if err != nil {
		return nil, err
	}
	leases := make([]kept, t.Count)
	before := memoryNow()
	err = inParallel(inFlight, t.Count, func(i int) (err error) {
		leases[i], err = l.(keeper).keep(fmt.Sprintf("held:%d", i))
		return err
	})
	each := memoryNow().since(before, t.Count)
	return func(float64) (result, error) {
		r := result{Figures: report.Sample{"bytes/lease": each.heap + each.stacks, "goroutines/lease": each.goroutines}}
		if one, ok := l.(*singles); ok { // its leases do not renew themselves
			for end := time.Now().Add(t.Duration); time.Now().Before(end); {
				next := time.Now().Add(t.Lease / 3)
				if err := one.renew(leases); err != nil {
					return r, err
				}
				time.Sleep(time.Until(next))
			}
			return r, nil
		}
		time.Sleep(t.Duration)
		for _, l := range leases {
			if err := l.Err(); err != nil {
				return r, err
			}
		}
		return r, nil
	}, err
}

package main

import (
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
)

const (
	// heldLease is shorter than usual, so that renewals are often: every 2 s.
	heldLease = 6 * time.Second
	// heldTime is how many times longer than others this workload watches.
	heldTime = 12
	// inFlight is how many calls are under way where keys are taken, and where each lease is
	// renewed by a call of its own.
	inFlight = 64
)

// held is many keys that are held, with leases of the given length that are renewed every
// third of it.
//
// CPU is compared, for each renewal, with a program that renews each lease by a bare script of
// its own to each node, 64 calls at a time. Bytes are heap and stacks that came with the leases,
// their keys and owners included; of Java the heap alone. Calls, renewals and CPU of the server
// are those of one node.
func held(name string, leases int, length time.Duration, nodes int, libraries ...string) workload {
	w := workload{name: name}
	for _, l := range libraries {
		w.subjects = append(w.subjects, subject{name: l, library: l, nodes: nodes, run: func(st store, d time.Duration) (report.Sample, error) {
			return watchHeld(st, l, leases, length, d)
		}})
	}
	return w
}

func watchHeld(st store, library string, leases int, length, d time.Duration) (report.Sample, error) {
	interval := length / 3
	intervals := max(1, int(math.Round(float64(heldTime*d)/float64(interval))))
	t := task{Role: "keep", Addrs: st.addrs(), Library: library, Count: leases, Lease: length, Duration: time.Duration(intervals) * interval}
	workers, end, err := fleet{inFlight}.start(t)
	defer end()
	if err != nil {
		return nil, err
	}
	var results []result
	begin := time.Now()
	store, err := during(st, func() (err error) {
		results, err = together(workers, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	took, nodes := time.Since(begin), float64(len(st.addrs()))
	renewals, calls := (store.calls["pexpire"]+store.calls["pexpireat"])/nodes, store.calls["evalsha"]/nodes
	got := report.Sample{
		"client CPU µs/renewal":           results[0].CPU / renewals * 1e6,
		"server CPU µs/renewal":           store.cpu / nodes / renewals * 1e6,
		"renewals per lease and interval": renewals / float64(leases*intervals),
		"renewals/call":                   renewals / calls,
		"calls/s":                         calls / took.Seconds(),
		"longest script ms":               store.longest,
	}
	maps.Copy(got, results[0].Figures)
	if s, ok := st.(*server); ok {
		left, err := s.do("DBSIZE").AsInt64()
		if err == nil && left < int64(leases) {
			err = fmt.Errorf("%w: of %d leases %d were lost", errIncomplete, leases, int64(leases)-left)
		}
		return got, err
	}
	return got, nil
}

// keepJob is keys that are held.
type keepJob struct {
	keeper
	kept     []kept
	each     added
	interval time.Duration
	time     time.Duration
}

func prepareKeep(t task) (job, error) {
	l, err := libraries[t.Library].open(t)
	if err != nil {
		return nil, err
	}
	j := &keepJob{keeper: l.(keeper), kept: make([]kept, t.Count), interval: t.Lease / 3, time: t.Duration}
	if err = l.cycle(warmed)(func() {}); err == nil {
		before := memoryNow()
		err = inParallel(inFlight, t.Count, func(i int) (err error) {
			j.kept[i], err = j.keep(fmt.Sprintf("held:%d", i))
			return err
		})
		j.each = memoryNow().since(before, t.Count)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return j, nil
}

func (j *keepJob) work(float64) (result, error) {
	r := result{Figures: report.Sample{"bytes/lease": j.each.heap + j.each.stack, "goroutines/lease": j.each.goroutines}}
	if one, ok := j.keeper.(*singles); ok { // its leases do not renew themselves
		for end := time.Now().Add(j.time); time.Now().Before(end); {
			next := time.Now().Add(j.interval)
			if err := one.renew(j.kept); err != nil {
				return r, err
			}
			time.Sleep(time.Until(next))
		}
		return r, nil
	}
	time.Sleep(j.time)
	for _, l := range j.kept {
		if err := l.Err(); err != nil {
			return r, err
		}
	}
	return r, nil
}

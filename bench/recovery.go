package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
)

const (
	// killedLease is the lease of a holder that is killed: the shortest that ZooKeeper allows,
	// and a whole number of seconds, as etcd needs.
	killedLease = 4 * time.Second
	// betweenRenewals is when the holder is killed: between its first renewal, after a third of the
	// lease, and its second, so that all libraries have equally much of the lease left.
	betweenRenewals = killedLease / 2
	// brokenLease is the lease where something else breaks. A waiter that does not notice it
	// waits for the end of the lease.
	brokenLease = 10 * time.Second
)

// breakage is what happens while one process holds the key and others wait for it.
type breakage struct {
	name    string
	lease   time.Duration
	waiting int           // how many processes
	after   time.Duration // since the holder was started, at least
	// happen returns the earliest time at which a waiter could have the key.
	happen func(st store, library string, holding *worker) (time.Time, error)
	// forgets: Redis no longer knows the holder, and may be back before happen returns.
	forgets bool
	// election: the holder leads, and the others are candidates.
	election bool
}

var (
	holderKilled   = breakage{name: "recovery/holder killed", lease: killedLease, waiting: 1, after: betweenRenewals, happen: kill}
	connectionsCut = breakage{name: "recovery/subscription cut", lease: brokenLease, waiting: 1, happen: cut}
	redisRestarted = breakage{name: "recovery/Redis restarted", lease: brokenLease, waiting: 1, happen: restart, forgets: true}
	leaderKilled   = breakage{name: "election/leader killed", lease: killedLease, waiting: 3, after: betweenRenewals, happen: kill, election: true}
	leaderResigns  = breakage{name: "election/leader resigns", lease: brokenLease, waiting: 3, happen: release, election: true}
)

// workload measures how long the first waiter waits after something broke.
func (b breakage) workload(libraries ...string) workload {
	return workload{b.name, each(libraries, nil, func(st store, library string, _ time.Duration) (report.Sample, error) {
		t := task{
			Role: "hold", Addrs: st.addrs(), Library: library, Hot: true, Lease: b.lease, Election: b.election,
			Duration: b.lease + patience, Processes: 1, Goroutines: 1,
			Process: -1, // as it may be killed; warm Java processes have other places
		}
		asked := time.Now()
		holding := must(startWorker(t))
		defer crew{holding}.end()
		t.Role = "ask"
		asking := fleetOf(b.waiting, 1).start(st, t)
		defer asking.end()
		time.Sleep(time.Until(asked.Add(b.after)))
		begun := must(b.happen(st, library, holding))
		results := must(asking.together(0))
		first := slices.MinFunc(results, func(x, y result) int { return cmp.Compare(x.At, y.At) })
		took, err := b.waited(asked, begun, time.Unix(0, first.At))
		return report.Sample{"ms until the waiter has it": ms(took)}, err
	})}
}

// waited returns how long the waiter did without the key that it could have had from begun on.
// asked is before the holder asked for it.
func (b breakage) waited(asked, begun, had time.Time) (time.Duration, error) {
	switch {
	case b.forgets || !had.Before(begun):
		return max(had.Sub(begun), 0), nil
	case had.Sub(asked) < b.lease:
		return 0, fmt.Errorf("%w: the waiter had the key %v before it was free", errBroken, begun.Sub(had))
	}
	return 0, fmt.Errorf("the waiter had the key %v before it was free, when the lease may have ended", begun.Sub(had))
}

// kill kills the process that holds the key.
func kill(_ store, _ string, holding *worker) (time.Time, error) {
	now := time.Now()
	holding.kill()
	return now, nil
}

// release has the holder unlock.
func release(_ store, _ string, holding *worker) (time.Time, error) {
	holding.begin(time.Now(), 0)
	r, err := holding.hear()
	return time.Unix(0, r.At), err
}

// cut cuts the connections that bring news of releases, and releases at once.
func cut(st store, library string, holding *worker) (time.Time, error) {
	kinds := []string{"pubsub"}
	if library == "rueidislock" {
		kinds = append(kinds, "normal") // that brings its invalidations
	}
	for _, kind := range kinds {
		if _, err := st.(*deployment).masters[0].TryDo("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"); err != nil {
			return time.Time{}, err
		}
	}
	return release(st, library, holding)
}

// restart makes Redis lose everything. The holder does not react.
func restart(st store, _ string, _ *worker) (time.Time, error) {
	err := st.(*deployment).restart()
	return time.Now(), err
}

func prepareHold(t task) job {
	unlock := hold(t.open(), hotKey)
	return func(float64) result {
		released := time.Now()
		check(unlock())
		return result{At: released.UnixNano()}
	}
}

// prepareAsk returns when the waiter certainly waits.
func prepareAsk(t task) job {
	had, failed := make(chan time.Time, 1), make(chan error, 1) // one of them gets a value
	cycle := t.open().cycle(hotKey)
	go func() {
		if err := cycle(func() { had <- time.Now() }); err != nil {
			failed <- err
		}
	}()
	time.Sleep(settleTime)
	return func(float64) (r result) {
		select {
		case at := <-had:
			r.At = at.UnixNano()
		case err := <-failed:
			check(fmt.Errorf("the waiter gave up: %w", err))
		case <-time.After(t.Duration):
			check(errStuck)
		}
		return r
	}
}

package main

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
)

const (
	// killedLease is what a holder asks for that is killed: the shortest that etcd has whole
	// seconds for and ZooKeeper allows.
	killedLease = 4 * time.Second
	// brokenLease is the lease where something else breaks. A waiter that does not notice
	// waits for its end.
	brokenLease = 10 * time.Second
)

// breakage is what happens while one process holds the key and another waits for it.
type breakage struct {
	name  string
	lease time.Duration
	// happen returns when the waiter could have the key at the earliest.
	happen func(st store, library string, holding *worker) (time.Time, error)
	// forgets: Redis knows nothing of the holder any more, and may have started before
	// happen returns.
	forgets bool
}

var (
	holderKilled   = breakage{"holder killed", killedLease, kill, false}
	connectionsCut = breakage{"subscription cut", brokenLease, cut, false}
	redisRestarted = breakage{"Redis restarted", brokenLease, restart, true}
)

// workload measures how long a waiter waits after something broke.
func (b breakage) workload(libraries ...string) workload {
	w := workload{name: "recovery/" + b.name}
	for _, l := range libraries {
		w.subjects = append(w.subjects, subject{name: l, library: l, run: func(st store, _ time.Duration) (report.Sample, error) {
			took, err := b.run(st, l)
			return report.Sample{"ms until the waiter has it": ms(took)}, err
		}})
	}
	return w
}

// holderPlace is the place of the process that holds the key and may be killed; a Java
// process that is warm is at another.
const holderPlace = -1

func (b breakage) run(st store, library string) (time.Duration, error) {
	t := task{
		Role: "hold", Addrs: st.addrs(), Library: library, Hot: true, Lease: b.lease,
		Duration: b.lease + patience, Process: holderPlace, Processes: 1, Goroutines: 1,
	}
	asked := time.Now()
	holding, err := startWorker(t)
	if err != nil {
		return 0, err
	}
	defer leave(holding)
	t.Role, t.Process = "ask", 0
	asking, err := startWorker(t)
	if err != nil {
		return 0, err
	}
	defer leave(asking)
	begun, err := b.happen(st, library, holding)
	if err != nil {
		return 0, err
	}
	asking.begin(time.Now(), 0)
	r, err := asking.result()
	if err != nil {
		return 0, err
	}
	return b.waited(asked, begun, time.Unix(0, r.At))
}

// waited is how long the waiter went without the key that it could have had from begun on.
// asked is when the holder had not asked for it yet.
func (b breakage) waited(asked, begun, had time.Time) (time.Duration, error) {
	switch {
	case b.forgets || !had.Before(begun):
		return max(had.Sub(begun), 0), nil
	case had.Sub(asked) < b.lease:
		return 0, fmt.Errorf("%w: the waiter had the key %v before it was free", errBroken, begun.Sub(had))
	}
	return 0, fmt.Errorf("the waiter had the key %v before it was free, when the lease may have ended", begun.Sub(had))
}

func leave(w *worker) {
	w.release()
	w.end()
}

// kill kills the process that holds the key.
func kill(_ store, _ string, holding *worker) (time.Time, error) {
	return time.Now(), holding.kill()
}

// cut cuts the connections on which releases are heard, and releases at once.
func cut(st store, library string, holding *worker) (time.Time, error) {
	kinds := []string{"pubsub"}
	if library == "rueidislock" {
		kinds = append(kinds, "normal") // where it hears what has changed
	}
	for _, kind := range kinds {
		if err := st.(*server).do("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").Error(); err != nil {
			return time.Time{}, err
		}
	}
	holding.begin(time.Now(), 0)
	r, err := holding.result()
	return time.Unix(0, r.At), err
}

// restart has Redis lose everything. The holder does nothing about it.
func restart(st store, _ string, _ *worker) (time.Time, error) {
	err := st.(*server).restart()
	return time.Now(), err
}

// holdJob holds the key.
type holdJob struct {
	locker
	unlock func() error
}

func prepareHold(t task) (job, error) {
	l, err := libraries[t.Library].open(t)
	if err != nil {
		return nil, err
	}
	unlock, err := hold(l, hotKey)
	if err != nil {
		l.close()
		return nil, err
	}
	return holdJob{l, unlock}, nil
}

// work unlocks it, and tells when.
func (j holdJob) work(float64) (result, error) {
	released := time.Now()
	return result{At: released.UnixNano()}, j.unlock()
}

// askJob waits for the key and keeps the time at which it had it.
type askJob struct {
	locker
	limit time.Duration
	had   chan time.Time // one is sent
	err   chan error     // or this
}

// prepareAsk returns when it surely waits.
func prepareAsk(t task) (job, error) {
	l, err := libraries[t.Library].open(t)
	if err != nil {
		return nil, err
	}
	j := &askJob{l, t.Duration, make(chan time.Time, 1), make(chan error, 1)}
	cycle := l.cycle(hotKey)
	go func() {
		if err := cycle(func() { j.had <- time.Now() }); err != nil {
			j.err <- err
		}
	}()
	time.Sleep(settleTime)
	return j, nil
}

func (j *askJob) work(float64) (result, error) {
	select {
	case had := <-j.had:
		return result{At: had.UnixNano()}, nil
	case err := <-j.err:
		return result{}, fmt.Errorf("the waiter gave up: %w", err)
	case <-time.After(j.limit):
		return result{}, errStuck
	}
}

package main

import (
	"errors"
	"fmt"
	"time"
)

const (
	// killedLease is what a holder asks for who is killed: the shortest that etcd has
	// whole seconds for and ZooKeeper allows.
	killedLease = 4 * time.Second
	// brokenLease is the lease where something else breaks. Who does not notice waits
	// for its end.
	brokenLease = 10 * time.Second
)

// breakage is what happens while one process holds the key and another waits for it.
type breakage struct {
	name  string
	lease time.Duration
	// happen returns when the waiter could have the key at the earliest.
	happen func(s *server, library string, holding member) (time.Time, error)
	// forgets: Redis knows nothing of the holder any more, and may have started before
	// happen returns.
	forgets bool
}

// recoveries measure how long a waiter waits after something broke.
func recoveries() []workload {
	onRedis := []string{holdfastName, fairName, rueidisName, redsyncName, redislockName, redissonName, redissonFairName}
	return []workload{
		breakage{"holder killed", killedLease, kill, false}.workload(atMost(1.1*ms(killedLease)),
			append(onRedis, redissonSpinName, etcdName, zookeeperName)),
		breakage{"subscription cut", brokenLease, cut, false}.workload(target{}, onRedis),
		breakage{"Redis restarted", brokenLease, restart, true}.workload(target{}, onRedis),
	}
}

const recovered = "ms until the waiter has it"

func (b breakage) workload(limit target, names []string) workload {
	w := workload{name: "recovery/" + b.name, spans: 4}
	for _, name := range names {
		w.subjects = append(w.subjects, subject{
			name: name, rival: isRival(name), needs: needs(name), run: func(s *server, _ time.Duration) (sample, error) {
				took, err := b.run(s, name)
				return sample{recovered: ms(took)}, err
			}})
		if isRival(name) {
			w.figures = append(w.figures, figure{name + ": " + recovered, target{}, of(name, recovered)})
		} else {
			w.figures = append(w.figures, figure{name + ": " + recovered, limit, of(name, recovered)})
		}
	}
	return w
}

// holderPlace is the place of the one that holds the key and may be killed; a Java
// process that is warm is not.
const holderPlace = -1

func (b breakage) run(s *server, library string) (time.Duration, error) {
	st, err := storeOf(library, s)
	if err != nil {
		return 0, err
	}
	task := childTask{
		Addr: st.address(), Library: library, Role: holdRole, Hot: true, Lease: b.lease,
		Duration: b.lease + patience, Place: place{Process: holderPlace, Processes: 1, Goroutines: 1},
	}
	asked := time.Now()
	holding, err := startMember(task)
	if err != nil {
		return 0, err
	}
	defer leave(holding)
	task.Role, task.Place.Process = askRole, 0
	asking, err := startMember(task)
	if err != nil {
		return 0, err
	}
	defer leave(asking)
	begun, err := b.happen(s, library, holding)
	if err != nil {
		return 0, err
	}
	if err := asking.begin(time.Now()); err != nil {
		return 0, err
	}
	r, err := asking.result()
	if err != nil {
		return 0, err
	}
	return b.waited(asked, begun, time.Unix(0, r.At))
}

// waited is how long the waiter went without the key that it could have had from
// begun on. asked is when the holder had not asked for it yet.
func (b breakage) waited(asked, begun, had time.Time) (time.Duration, error) {
	switch {
	case b.forgets || !had.Before(begun):
		return max(had.Sub(begun), 0), nil
	case had.Sub(asked) < b.lease:
		return 0, fmt.Errorf("%w: the waiter had the key %v before it was free", errBroken, begun.Sub(had))
	}
	return 0, fmt.Errorf("the waiter had the key %v before it was free, when the lease may have ended", begun.Sub(had))
}

func leave(m member) {
	m.release()
	m.end()
}

// kill kills the process that holds the key.
func kill(_ *server, _ string, holding member) (time.Time, error) {
	return time.Now(), holding.kill()
}

// cut cuts the connections on which releases are heard, and releases at once.
func cut(s *server, library string, holding member) (time.Time, error) {
	kinds := []string{"pubsub"}
	if library == rueidisName {
		kinds = append(kinds, "normal") // where it hears what has changed
	}
	for _, kind := range kinds {
		if _, err := s.do("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"); err != nil {
			return time.Time{}, err
		}
	}
	if err := holding.begin(time.Now()); err != nil {
		return time.Time{}, err
	}
	r, err := holding.result()
	return time.Unix(0, r.At), err
}

// restart has Redis lose everything. The holder does nothing about it.
func restart(s *server, _ string, _ member) (time.Time, error) {
	err := s.restart()
	return time.Now(), err
}

// holdJob holds the key.
type holdJob struct {
	locker
	held lease
}

func (c childTask) prepareHold() (job, error) {
	l, err := libraries[c.Library](c.Addr, c.lease())
	if err != nil {
		return nil, err
	}
	h, ok := l.(holder)
	if !ok {
		l.close()
		return nil, errors.New("the library cannot hold a key")
	}
	held, err := h.hold("hot")
	if err != nil {
		l.close()
		return nil, err
	}
	return holdJob{l, held}, nil
}

// work unlocks it, and tells when.
func (j holdJob) work() (childResult, error) {
	released := time.Now()
	return childResult{At: released.UnixNano()}, j.held.Unlock(always)
}

// askJob waits for the key and keeps the time at which it had it.
type askJob struct {
	locker
	limit time.Duration
	had   chan time.Time // one is sent
	err   chan error     // or this
}

// prepareAsk returns when it surely waits.
func (c childTask) prepareAsk() (job, error) {
	l, err := libraries[c.Library](c.Addr, c.lease())
	if err != nil {
		return nil, err
	}
	j := &askJob{l, c.Duration, make(chan time.Time, 1), make(chan error, 1)}
	cycle := l.cycle("hot")
	go func() {
		if err := cycle(func() { j.had <- time.Now() }); err != nil {
			j.err <- err
		}
	}()
	time.Sleep(settleTime)
	return j, nil
}

func (j *askJob) work() (childResult, error) {
	limit := time.NewTimer(j.limit)
	defer limit.Stop()
	select {
	case had := <-j.had:
		return childResult{At: had.UnixNano()}, nil
	case err := <-j.err:
		return childResult{}, fmt.Errorf("the waiter gave up: %w", err)
	case <-limit.C:
		return childResult{}, errStuck
	}
}

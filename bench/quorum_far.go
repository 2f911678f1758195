package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/multilock"
)

const (
	// farTrip is what the way to each node adds to a round trip.
	farTrip = 2 * time.Millisecond
	// hung is how many nodes stand still, the most that a quorum allows.
	hung = masters / 2
	// noticed is when surely enough calls to a node that hangs have timed out.
	noticed = 6 * multilock.DefaultNodeTimeout
)

// far is one goroutine that locks and unlocks on a quorum whose nodes are a way
// off, compared with rlock on one such node; first with all nodes, then while two
// of them hang: the very first lock, and those from when the hang is known. It is
// also met by a locker that has made no call before. redsync does the same on nodes
// of its own.
//
// Latency is that of Lock, and of both Lock and Unlock (cycle), in the median.
func far() workload {
	const lock, cycle, hangs = "lock ms", "cycle ms", ", two hang"
	const first, fresh = "first lock, hang not known: ms more", "first lock of a new locker: ms more"
	limit := atMost(1.1 * multilock.DefaultNodeTimeout.Seconds() * 1000) // a tenth for the way and the timers
	return workload{
		name: fmt.Sprintf("quorum/%v", farTrip),
		subjects: []subject{
			{name: holdfastName, run: runFarOne},
			{name: multilockName, run: runFarQuorum(openMultilock, silentMultilock)},
			{name: redsyncName, rival: true, run: runFarQuorum(openRedsync, openRedsync)},
		},
		figures: []figure{
			{lock + ", rlock on one node", target{}, of(holdfastName, lock)},
			{lock, target{}, of(multilockName, lock)},
			{lock + " ÷ rlock", atMost(1.3), ratio(multilockName, holdfastName, lock)},
			{cycle + " ÷ rlock", atMost(1.3), ratio(multilockName, holdfastName, cycle)},
			{lock + ", two hang ÷ none hangs", atMost(1.1), of(multilockName, "lock, hang ÷ none")},
			{cycle + ", two hang ÷ none hangs", atMost(1.1), of(multilockName, "cycle, hang ÷ none")},
			{first, limit, of(multilockName, first)},
			{"slowest cycle until it is known: ms more", limit, of(multilockName, "slowest until known: ms more")},
			{fresh, limit, of(multilockName, fresh)},
			{lock + " ÷ redsync", target{}, ratio(multilockName, redsyncName, lock)},
			{cycle + " ÷ redsync", target{}, ratio(multilockName, redsyncName, cycle)},
			{lock + hangs + " ÷ redsync", target{}, ratio(multilockName, redsyncName, lock+hangs)},
			{cycle + hangs + " ÷ redsync", target{}, ratio(multilockName, redsyncName, cycle+hangs)},
			{first + ", redsync", target{}, of(redsyncName, first)},
			{fresh + ", redsync", target{}, of(redsyncName, fresh)},
		},
	}
}

func runFarOne(s *server, d time.Duration) (sample, error) {
	p, err := delay(s.addr, farTrip)
	if err != nil {
		return nil, err
	}
	defer p.close()
	l, err := libraries[holdfastName](p.addr(), usualLease)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if _, err := timed(l, d/5); err != nil {
		return nil, err
	}
	all, err := timed(l, d)
	return sample{"lock ms": median(all.lock), "cycle ms": median(all.cycle)}, err
}

// silentMultilock has made no call.
func silentMultilock(addrs []string, lease time.Duration) (locker, error) {
	return newMultilocker(addrs, lease)
}

// runFarQuorum opens one locker that is used, and another that first is when nodes hang.
func runFarQuorum(used, silent quorumLibrary) func(*server, time.Duration) (sample, error) {
	return func(_ *server, d time.Duration) (sample, error) {
		all, err := startNodes(masters)
		if err != nil {
			return nil, err
		}
		defer all.stop()
		var addrs []string
		for _, s := range all {
			p, err := delay(s.addr, farTrip)
			if err != nil {
				return nil, err
			}
			defer p.close()
			addrs = append(addrs, p.addr())
		}
		l, err := used(addrs, usualLease)
		if err != nil {
			return nil, err
		}
		defer l.close()
		fresh, err := silent(addrs, usualLease)
		if err != nil {
			return nil, err
		}
		defer fresh.close()
		defer all.kill() // a client waits long for the end of a connection to a node that hangs
		return farQuorum(all, l, fresh, d)
	}
}

// farQuorum measures with all nodes, has some hang, and measures again.
func farQuorum(all nodes, l, fresh locker, d time.Duration) (sample, error) {
	if _, err := timed(l, d/5); err != nil {
		return nil, err
	}
	up, err := timed(l, d)
	if err != nil {
		return nil, err
	}
	for _, s := range all[:hung] {
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
	if err != nil {
		return nil, err
	}
	lock, cycle := median(up.lock), median(up.cycle)
	return sample{
		"lock ms":                             lock,
		"cycle ms":                            cycle,
		"lock ms, two hang":                   median(known.lock),
		"cycle ms, two hang":                  median(known.cycle),
		"lock, hang ÷ none":                   median(known.lock) / lock,
		"cycle, hang ÷ none":                  median(known.cycle) / cycle,
		"first lock, hang not known: ms more": learning.lock[0] - lock,
		"slowest until known: ms more":        quantile(learning.cycle, 1) - cycle,
		"first lock of a new locker: ms more": met.lock[0] - lock,
	}, nil
}

// latencies are those of cycles one after the other, in ms.
type latencies struct{ lock, cycle []float64 }

// timed makes cycles for d, at least one.
func timed(l locker, d time.Duration) (all latencies, err error) {
	cycle := l.cycle(load{}.key(0))
	for end := time.Now().Add(d); ; {
		var had time.Time
		asked := time.Now()
		if err := cycle(func() { had = time.Now() }); err != nil {
			return all, err
		}
		over := time.Now()
		all.lock = append(all.lock, had.Sub(asked).Seconds()*1000)
		all.cycle = append(all.cycle, over.Sub(asked).Seconds()*1000)
		if over.After(end) {
			return all, nil
		}
	}
}

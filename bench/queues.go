package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// queues is one key with as many waiters as told, half of them in each of two
// clients of this process, without local hand-over: what a hand-over costs the
// server, compared with the shortest queue.
//
// Inner commands are those that the scripts call.
func queues(lengths ...int) workload {
	const cpu, inner, speed = "server CPU µs/hand-over", "inner commands/hand-over", "hand-overs/s"
	shortest := lengths[0]
	name := func(length int) string { return fmt.Sprintf("queue of %d", length) }
	w := workload{name: fmt.Sprintf("fair/queues of %d to %d", shortest, lengths[len(lengths)-1])}
	for _, length := range lengths {
		w.subjects = append(w.subjects, subject{name: name(length), run: func(s *server, d time.Duration) (sample, error) {
			return runQueue(s, length, d)
		}})
		flat := atMost(1.2)
		if length == shortest {
			flat = target{}
			w.figures = append(w.figures,
				figure{speed + ", " + name(length), flat, of(name(length), speed)},
				figure{cpu + ", " + name(length), flat, of(name(length), cpu)},
				figure{inner + ", " + name(length), flat, of(name(length), inner)})
			continue
		}
		w.figures = append(w.figures,
			figure{cpu + ", " + name(length) + " ÷ " + strconv.Itoa(shortest), flat, ratio(name(length), name(shortest), cpu)},
			figure{inner + ", " + name(length) + " ÷ " + strconv.Itoa(shortest), flat, ratio(name(length), name(shortest), inner)})
	}
	return w
}

// queueRun is goroutines that lock and unlock one key.
type queueRun struct {
	over      atomic.Bool
	handovers atomic.Int64
	group     sync.WaitGroup
	errs      chan error
}

func runQueue(s *server, length int, d time.Duration) (sample, error) {
	var lockers [3]locker
	for i := range lockers {
		l, err := libraries[fairStraightName](s.addr, longLease)
		if err != nil {
			return nil, err
		}
		defer l.close()
		lockers[i] = l
	}
	held, err := lockers[2].(holder).hold("hot")
	if err != nil {
		return nil, err
	}
	r := &queueRun{errs: make(chan error, length)}
	for i := range length {
		cycle := lockers[i%2].cycle("hot")
		r.group.Go(func() { r.worker(cycle) })
	}
	if err := s.waitForQueue(length); err != nil {
		return nil, err
	}
	if err := held.Unlock(always); err != nil {
		return nil, err
	}
	time.Sleep(d / 5)
	got, err := r.watch(s, d)
	r.over.Store(true)
	return got, errors.Join(err, finish(0, &r.group), errors.Join(drain(r.errs)...))
}

func (r *queueRun) worker(cycle func(func()) error) {
	for !r.over.Load() {
		if err := cycle(func() { r.handovers.Add(1) }); err != nil {
			r.errs <- err
			return
		}
	}
}

// watch measures for d what the hand-overs cost.
func (r *queueRun) watch(s *server, d time.Duration) (sample, error) {
	var cpu float64
	var handovers int64
	called, err := s.callsDuring(func() (err error) {
		cpu, err = s.cpuDuring(func() error {
			handovers = -r.handovers.Load()
			time.Sleep(d)
			handovers += r.handovers.Load()
			return nil
		})
		return err
	})
	each := float64(handovers)
	return sample{
		"hand-overs/s":             each / d.Seconds(),
		"server CPU µs/hand-over":  cpu / each * 1e6,
		"inner commands/hand-over": float64(called.inner()) / each,
	}, err
}

// waitForQueue returns when so many wait for the key that all want.
func (s *server) waitForQueue(length int) error {
	for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		reply, err := s.do("LLEN", "redisson_lock_queue:{hot}")
		if err != nil {
			return err
		}
		if n, err := reply.AsInt64(); err != nil || n == int64(length) {
			return err
		} else if time.Now().After(limit) {
			return fmt.Errorf("%d of %d wait after %v", n, length, patience)
		}
	}
}

// drain returns what is in a channel to which nobody sends any more.
func drain(errs chan error) (all []error) {
	close(errs)
	for err := range errs {
		all = append(all, err)
	}
	return all
}

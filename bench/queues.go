package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// queues is one key with as many waiters as told, half of them in each of two
// clients of this process, without local hand-over: what a hand-over costs the
// server, compared with the shortest queue.
//
// Inner commands are those that the scripts call.
func queues(lengths ...int) workload {
	const cpu, inner, speed = "server CPU µs/cycle", "inner commands/cycle", "cycles/s"
	shortest := lengths[0]
	name := func(length int) string { return fmt.Sprintf(queueName, length) }
	w := workload{name: fmt.Sprintf("fair/queues of %d to %d", shortest, lengths[len(lengths)-1])}
	for _, length := range lengths {
		w.subjects = append(w.subjects, subject{name: name(length), run: func(s *server, d time.Duration) (sample, error) {
			return runQueue(s, length, d)
		}})
		flat := atMost(1.2)
		if length == shortest {
			flat = target{}
			w.figures = append(w.figures,
				figure{"hand-overs/s, " + name(length), flat, of(name(length), speed)},
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

// queueName is the subject's name, with the length.
const queueName = "queue of %d"

// queueRun is goroutines that lock and unlock one key.
type queueRun struct {
	over  atomic.Bool
	group sync.WaitGroup
	errs  chan error

	mu    sync.Mutex
	waits *hdrhistogram.Histogram // guarded by mu
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
	r := &queueRun{errs: make(chan error, length), waits: newWaits()}
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
	var asked time.Time
	has := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		_ = r.waits.RecordValue(time.Since(asked).Nanoseconds()) // nothing lasts longer than patience
	}
	for !r.over.Load() {
		asked = time.Now()
		if err := cycle(has); err != nil {
			r.errs <- err
			return
		}
	}
}

// forget begins anew to keep the waits, and returns those until now.
func (r *queueRun) forget() *hdrhistogram.Histogram {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.waits
	r.waits = newWaits()
	return before
}

// watch measures for d what the hand-overs cost.
func (r *queueRun) watch(s *server, d time.Duration) (got sample, err error) {
	var t total
	store, err := spentDuring(s, func() (err error) {
		r.forget()
		objects, bytes := allocated()
		t.cpu, err = cpuDuring(cpuNow, func() error {
			time.Sleep(d)
			return nil
		})
		t.waits = r.forget()
		nowObjects, nowBytes := allocated()
		t.objects, t.bytes = float64(nowObjects-objects), float64(nowBytes-bytes)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.all = float64(t.waits.TotalCount())
	t.allocated = t.all
	got = t.costs(store, fairStraightName)
	got["cycles/s"] = t.all / d.Seconds()
	got["inner commands/cycle"] = float64(store.sent.inner()) / t.all
	return got, nil
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

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// saleKeys are wanted by Zipf's law: one in six or seven wants the first.
	saleKeys = 10_000
	// saleSection is what a sale takes at least; the system sleeps a little longer.
	saleSection = 200 * time.Microsecond
	// saleLimit ends the run: the rate before is the highest that is served.
	saleLimit = 100 * time.Millisecond
	// saleCrowd is how many may wait at a time. More are not let in: the rate is not served.
	saleCrowd = 5000

	saleFirst  = 500 // a second
	saleGrowth = 1.4
	saleLast   = 200_000
)

// sale is a flash sale in one process: many keys, some of them hot, and customers
// who come at a rate whether those before them have been served or not. The rate
// rises until the p99 wait is above saleLimit.
//
// A wait is from the time at which the customer was to come, so that one who was
// held up by a stall counts for all of it (no coordinated omission).
func sale() workload {
	const highest, first = "cycles/s", "p99 ms at the first rate"
	w := workload{
		name:  fmt.Sprintf("flash sale/%d keys × %v", saleKeys, saleSection),
		spans: 6,
		figures: []figure{
			{"customers/s until p99 > 100 ms", target{}, of(holdfastName, highest)},
			{"÷ best rival", atLeast(1), beside(holdfastName, highest)},
			{fmt.Sprintf("p99 ms at %d/s", saleFirst), target{}, of(holdfastName, first)},
		},
	}
	for _, name := range []string{holdfastName, fairName, rueidisName, redsyncName, redislockName, etcdName, zookeeperName, redissonName} {
		w.subjects = append(w.subjects, subject{name: name, rival: isRival(name), needs: needs(name), run: func(s *server, d time.Duration) (sample, error) {
			st, err := storeOf(name, s)
			if err != nil {
				return nil, err
			}
			task := childTask{Addr: st.address(), Library: name, Role: saleRole, Duration: time.Duration(saleRates()) * d / 2}
			r, store, err := alone(st, task, nil)
			if err != nil {
				return nil, err
			}
			t, err := totalOf(r)
			if err != nil {
				return nil, err
			}
			maps.Copy(r.Figures, t.costs(store, name))
			return r.Figures, nil
		}})
	}
	return w
}

// saleRates is how many rates there are.
func saleRates() (n int) {
	for rate := float64(saleFirst); rate < saleLast; rate *= saleGrowth {
		n++
	}
	return n
}

// saleJob is a shop that is open.
type saleJob struct {
	locker
	each time.Duration // how long one rate lasts
}

func (c childTask) prepareSale() (job, error) {
	l, err := libraries[c.Library](c.Addr, c.lease())
	if err != nil {
		return nil, err
	}
	if err := l.cycle("warm")(func() {}); err != nil {
		l.close()
		return nil, err
	}
	return saleJob{l, c.Duration / time.Duration(saleRates())}, nil
}

// work tells the waits of the highest rate that was served, and of all rates together
// what a customer cost.
func (j saleJob) work() (r childResult, err error) {
	r.Figures = sample{"cycles/s": 0}
	highest := newWaits()
	objects, bytes := allocated()
	for rate := float64(saleFirst); rate < saleLast; rate *= saleGrowth {
		day := &saleRun{locker: j.locker, waits: newWaits()}
		served, err := day.open(rate, j.each)
		if err != nil {
			return r, err
		}
		r.All += int(day.waits.TotalCount())
		p99 := float64(day.waits.ValueAtQuantile(99)) / 1e6
		if served {
			r.Figures[fmt.Sprintf(saleFigure, int(rate))] = p99
		}
		if rate == saleFirst {
			r.Figures["p99 ms at the first rate"] = p99
		}
		if !served || p99 > ms(saleLimit) {
			break
		}
		r.Figures["cycles/s"], highest = rate, day.waits
	}
	r.Objects, r.Bytes = allocated()
	r.Objects, r.Bytes, r.Allocated = r.Objects-objects, r.Bytes-bytes, r.All
	r.Waits, err = encoded(highest)
	return r, err
}

// saleFigure names the p99 wait at one rate.
const saleFigure = "p99 ms at %d/s"

// saleRun is one rate.
type saleRun struct {
	locker locker
	inside [saleKeys]atomic.Bool
	crowd  atomic.Int64
	broken atomic.Bool
	group  sync.WaitGroup

	mu      sync.Mutex
	waits   *hdrhistogram.Histogram // guarded by mu
	failure error                   // guarded by mu
}

// open lets customers come for d; false if so many waited that not all were let in.
func (r *saleRun) open(rate float64, d time.Duration) (served bool, err error) {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, saleKeys-1)
	begun, served := time.Now(), true
	for i := range int(rate * d.Seconds()) {
		due := begun.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		if r.crowd.Add(1) > saleCrowd {
			served = false
			break
		}
		key := zipf.Uint64()
		r.group.Go(func() { r.customer(int(key), due) })
	}
	if err := finish(0, &r.group); err != nil && served {
		return false, err
	} else if err != nil {
		return false, nil // so many that they cannot be served in patience, either
	}
	if r.broken.Load() {
		return false, errBroken
	}
	return served, r.failure
}

func (r *saleRun) customer(key int, due time.Time) {
	err := once(r.locker, fmt.Sprintf("sku:%d", key), func() {
		had := time.Since(due)
		if r.inside[key].Swap(true) {
			r.broken.Store(true)
		}
		time.Sleep(saleSection)
		r.inside[key].Store(false)
		r.mu.Lock()
		defer r.mu.Unlock()
		_ = r.waits.RecordValue(had.Nanoseconds()) // nothing lasts longer than patience
	})
	r.crowd.Add(-1)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failure = err
	}
}

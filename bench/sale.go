package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
)

const (
	// saleKeys are chosen by Zipf's law: one customer in six or seven wants the first.
	saleKeys = 10_000
	// saleSection is the least time that a sale takes. The system sleeps a little longer.
	saleSection = 200 * time.Microsecond
	// saleLimit ends the run: the rate before is the highest that was served.
	saleLimit = 100 * time.Millisecond
	// saleCrowd is how many may wait at a time. If more come, the rate was not served.
	saleCrowd = 5000

	saleFirst  = 500 // a second
	saleGrowth = 1.4
	saleLast   = 200_000
)

// sale is a flash sale in one process: many keys, some of them hot, and customers that come
// at a rate, whether those before them have been served or not. The rate rises until the p99
// wait is above saleLimit.
//
// A wait begins when the customer is due, so that a stall counts in full for each customer
// that it held up (no coordinated omission). Costs are those of all rates together.
func sale(libraries ...string) workload {
	return workload{fmt.Sprintf("flash sale/%d keys × %v", saleKeys, saleSection), each(libraries, nil, sell)}
}

// sell raises the rate. Each lasts for half of d.
func sell(st store, library string, d time.Duration) (report.Sample, error) {
	workers := fleet{1}.start(st, task{Role: "sale", Library: library, Duration: d / 2})
	defer workers.end()
	var all []result
	rates, highest := report.Sample{"cycles/s": 0}, newWaits()
	did := st.during(func() {
		for rate := float64(saleFirst); rate < saleLast; rate *= saleGrowth {
			results := must(workers.together(rate))
			all = append(all, results...)
			waits := waitsOf(results)
			p99 := float64(waits.ValueAtQuantile(99)) / 1e6
			if rate == saleFirst {
				rates["p99 ms at the first rate"] = p99
			}
			if results[0].Figures[waitLeft] > 0 || p99 > ms(saleLimit) {
				return
			}
			rates["cycles/s"], highest = rate, waits
		}
	})
	got := costs(all, highest, did, library)
	maps.Copy(got, rates)
	return got, nil
}

func prepareSale(t task) job {
	l := t.openWarm()
	return func(rate float64) result {
		day := &saleDay{locker: l, waits: newWaits()}
		before := allocatedSince(allocations{})
		served := must(day.open(rate, t.Duration))
		allocs := allocatedSince(before)
		day.mu.Lock()
		defer day.mu.Unlock()
		customers := int(day.waits.TotalCount())
		r := result{All: customers, Allocated: customers, allocations: allocs}
		r.Waits = waitsOf([]result{{Waits: day.waits}}) // a copy: some may still wait
		if !served {
			r.Figures = report.Sample{waitLeft: float64(day.crowd.Load())}
		}
		return r
	}
}

// saleDay is one rate.
type saleDay struct {
	locker locker
	inside [saleKeys]atomic.Bool
	crowd  atomic.Int64
	group  sync.WaitGroup

	mu      sync.Mutex
	waits   *waits // guarded by mu
	failure error  // guarded by mu
}

// open lets customers come for d. It returns false if more waited than saleCrowd allows.
func (r *saleDay) open(rate float64, d time.Duration) (served bool, err error) {
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
		return false, nil // a crowd that patience is too short for
	}
	return served, r.failure
}

func (r *saleDay) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
}

func (r *saleDay) customer(key int, due time.Time) {
	err := r.locker.cycle(fmt.Sprintf("sku:%d", key))(func() {
		had := time.Since(due)
		if r.inside[key].Swap(true) {
			r.fail(errBroken)
		}
		time.Sleep(saleSection)
		r.inside[key].Store(false)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waits.add(had)
	})
	r.crowd.Add(-1)
	if err != nil {
		r.fail(err)
	}
}

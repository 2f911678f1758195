package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// quorumHeld is held on a quorum, compared with a program that renews each lease
// by a bare script of its own on each node, 64 calls to each at a time.
//
// Calls are those of one node. CPU of the client is for all nodes together, CPU of
// the server is one node's.
func quorumHeld(leases int, length time.Duration) workload {
	const single = "a call per lease and node"
	const sent, bytes, goroutines = "calls/s", "bytes/lease", "goroutines/lease"
	const block = "longest script ms"
	const client, server, often = "client CPU µs/renewal", "server CPU µs/renewal", "renewals per lease and interval"
	h := holding{leases: leases, length: length}
	return workload{
		name:  fmt.Sprintf("quorum/held %d", leases),
		spans: heldTime,
		subjects: []subject{
			{name: multilockName, run: h.quorum},
			{name: single, run: h.oneByOneAndNode},
		},
		figures: []figure{
			{sent + " of a node", target{}, of(multilockName, sent)},
			{sent + " ÷ " + single, atMost(0.25), ratio(multilockName, single, sent)},
			{"client CPU ÷ " + single, atMost(0.25), ratio(multilockName, single, client)},
			{"server CPU ÷ " + single, target{}, ratio(multilockName, single, server)},
			{block, target{}, of(multilockName, block)},
			{block + ", " + single, target{}, of(single, block)}, // of one key: what is not microseconds is the machine's
			{"bytes per lease", target{}, of(multilockName, bytes)},
			{"goroutines per lease", target{}, of(multilockName, goroutines)}, // of calls whose answer nobody waits for any more
			{often, target{}, of(multilockName, often)},
			{often + ", " + single, target{}, of(single, often)},
		},
	}
}

func (h holding) quorum(_ *server, d time.Duration) (sample, error) {
	all, err := startNodes(masters)
	if err != nil {
		return nil, err
	}
	defer all.stop()
	l, err := openMultilock(all.addrs(), h.length)
	if err != nil {
		return nil, err
	}
	defer l.close()
	kept, each, err := h.take(l.(holder))
	if err != nil {
		return nil, err
	}
	got, err := h.watch(all[0], d, func() (float64, error) {
		return cpuDuring(cpuNow, func() error {
			time.Sleep(time.Duration(h.intervals(d)) * h.interval())
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	got["bytes/lease"], got["goroutines/lease"] = each.heap+each.stack, each.goroutines
	for _, l := range kept {
		if err := l.Err(); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// oneByOneAndNode is the program that the quorum is compared with.
func (h holding) oneByOneAndNode(_ *server, d time.Duration) (sample, error) {
	all, err := startNodes(masters)
	if err != nil {
		return nil, err
	}
	defer all.stop()
	var floors []*floor
	for _, s := range all {
		f, err := newFloor(s.addr, h.length)
		if err != nil {
			return nil, err
		}
		defer f.close()
		floors = append(floors, f)
	}
	keys := make([]floorKey, h.leases)
	for i := range keys {
		keys[i] = newFloorKey(h.key(i))
	}
	if err := h.eachOn(floors, func(f *floor, i int) error { return f.acquire(keys[i]) }); err != nil {
		return nil, err
	}
	return h.watch(all[0], d, func() (float64, error) {
		return cpuDuring(cpuNow, func() error {
			return h.renewing(h.intervals(d), func() error {
				return h.eachOn(floors, func(f *floor, i int) error { return f.renew(keys[i]) })
			})
		})
	})
}

// eachOn calls f for every lease on every node, the nodes side by side.
func (h holding) eachOn(floors []*floor, f func(*floor, int) error) error {
	var group sync.WaitGroup
	errs := make([]error, len(floors))
	for i, node := range floors {
		group.Go(func() {
			errs[i] = h.each(func(lease int) error { return f(node, lease) })
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

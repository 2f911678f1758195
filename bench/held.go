package main

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

const (
	// heldLease is shorter than usual, so that renewals are often: every 2 s.
	heldLease = 6 * time.Second
	// heldTime is how many times longer than others this workload watches.
	heldTime = 12
	// inFlight is how many calls are under way where keys are taken, and where
	// each lease is renewed by a call of its own.
	inFlight = 64
)

// held is many keys that are held, with leases of the given length that are
// renewed every third of it.
//
// CPU is compared, for each renewal, with a program that renews each lease by a
// bare script of its own, 64 calls at a time. Bytes are heap and stacks that
// came with the leases, their keys and owners included. How long one call blocks
// the server is told by its slow log.
func held(leases int, length time.Duration) workload {
	const single = "a call per lease"
	const bytes, goroutines, client, server = "bytes/lease", "goroutines/lease", "client CPU µs/renewal", "server CPU µs/renewal"
	const often, block = "renewals per lease and interval", "longest script ms"
	h := holding{leases: leases, length: length}
	w := workload{
		name:     fmt.Sprintf("held/%d", leases),
		subjects: []subject{h.subject(holdfastName), {name: single, run: h.oneByOne}},
		figures: []figure{
			{"bytes per lease", atMost(400), of(holdfastName, bytes)},
			{"goroutines per lease", atMost(0.001), of(holdfastName, goroutines)},
			{"client CPU ÷ " + single, atMost(0.15), ratio(holdfastName, single, client)},
			{"server CPU ÷ " + single, atMost(0.5), ratio(holdfastName, single, server)},
			{block, atMost(1), of(holdfastName, block)},
			{block + ", " + single, target{}, of(single, block)}, // of one key: what is not microseconds is the machine's
			{often, target{}, of(holdfastName, often)},
			{often + ", " + single, target{}, of(single, often)},
		},
	}
	if leases <= 20_000 { // a goroutine for each lease
		w.subjects = append(w.subjects, h.subject(rueidisName))
		w.figures = append(w.figures,
			figure{"bytes per lease, rueidislock", target{}, of(rueidisName, bytes)},
			figure{"goroutines per lease, rueidislock", target{}, of(rueidisName, goroutines)})
	}
	return w
}

// holding is what is held.
type holding struct {
	leases int
	length time.Duration
}

func (h holding) interval() time.Duration { return h.length / 3 }

// intervals is how many of them are watched.
func (h holding) intervals(d time.Duration) int {
	return max(1, int(math.Round(float64(heldTime*d)/float64(h.interval()))))
}

func (h holding) key(i int) string { return fmt.Sprintf("held:%d", i) }

// each calls f for every lease.
func (h holding) each(f func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, inFlight)
	for w := range inFlight {
		group.Go(func() {
			for i := w; i < h.leases && errs[w] == nil; i += inFlight {
				errs[w] = f(i)
			}
		})
	}
	if err := finish(time.Duration(h.leases)*time.Millisecond, &group); err != nil {
		return err
	}
	return errors.Join(errs...)
}

func (h holding) subject(name string) subject {
	return subject{name: name, rival: name == rueidisName, run: func(s *server, d time.Duration) (sample, error) {
		l, err := libraries[name](s.addr, h.length)
		if err != nil {
			return nil, err
		}
		defer l.close()
		return h.keep(l.(holder), s, d)
	}}
}

// keep has l hold the keys, and measures s meanwhile.
func (h holding) keep(l holder, s *server, d time.Duration) (sample, error) {
	if err := l.cycle("warm")(func() {}); err != nil {
		return nil, err
	}
	kept := make([]lease, h.leases)
	before := memoryNow()
	err := h.each(func(i int) (err error) {
		kept[i], err = l.hold(h.key(i))
		return err
	})
	if err != nil {
		return nil, err
	}
	each := memoryNow().since(before, h.leases)

	got, err := h.watch(s, d, func() error {
		time.Sleep(time.Duration(h.intervals(d)) * h.interval())
		return nil
	})
	if err != nil {
		return nil, err
	}
	got["bytes/lease"], got["goroutines/lease"] = each.heap+each.stack, each.goroutines
	return got, h.each(func(i int) error {
		if err := kept[i].Err(); err != nil {
			return err
		}
		return kept[i].Unlock(always)
	})
}

// oneByOne is the program that holdfast is compared with.
func (h holding) oneByOne(s *server, d time.Duration) (sample, error) {
	f, err := newFloor(s.addr, h.length)
	if err != nil {
		return nil, err
	}
	defer f.close()
	keys := make([]floorKey, h.leases)
	err = h.each(func(i int) error {
		keys[i] = newFloorKey(h.key(i))
		return f.acquire(keys[i])
	})
	if err != nil {
		return nil, err
	}
	return h.renewing(s, d, func() error {
		return h.each(func(i int) error { return f.renew(keys[i]) })
	})
}

// renewing measures s while all is called once in every interval.
func (h holding) renewing(s *server, d time.Duration, all func() error) (sample, error) {
	return h.watch(s, d, func() error {
		for range h.intervals(d) {
			next := time.Now().Add(h.interval())
			if err := all(); err != nil {
				return err
			}
			time.Sleep(time.Until(next))
		}
		return nil
	})
}

// watch measures what the renewals cost while f runs.
func (h holding) watch(s *server, d time.Duration, f func() error) (sample, error) {
	if _, err := s.do("SLOWLOG", "RESET"); err != nil {
		return nil, err
	}
	var client, server float64
	begin := time.Now()
	calls, err := s.callsDuring(func() error {
		client0, err := cpuNow()
		if err != nil {
			return err
		}
		server0, err := s.cpu()
		if err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
		if server, err = s.cpu(); err != nil {
			return err
		}
		client, err = cpuNow()
		client, server = client-client0, server-server0
		return err
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	longest, err := s.longestScript()
	renewals := float64(calls["pexpire"] + calls["pexpireat"])
	return sample{
		"client CPU µs/renewal":           client / renewals * 1e6,
		"server CPU µs/renewal":           server / renewals * 1e6,
		"renewals per lease and interval": renewals / float64(h.leases*h.intervals(d)),
		"renewals/call":                   renewals / float64(calls["evalsha"]),
		"calls/s":                         float64(calls["evalsha"]) / took.Seconds(),
		"longest script ms":               longest,
	}, err
}

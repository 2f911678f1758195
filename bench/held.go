package main

import (
	"errors"
	"fmt"
	"maps"
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

// singleName is the program that renews each lease by a call of its own.
const singleName = "a call per lease"

// held is many keys that are held, with leases of the given length that are
// renewed every third of it.
//
// CPU is compared, for each renewal, with a program that renews each lease by a
// bare script of its own, 64 calls at a time. Bytes are heap and stacks that
// came with the leases, their keys and owners included; of Java the heap alone. How
// long one call blocks the server is told by its slow log.
func held(leases int, length time.Duration) workload {
	const bytes, goroutines, client, server = "bytes/lease", "goroutines/lease", "client CPU µs/renewal", "server CPU µs/renewal"
	const often, block = "renewals per lease and interval", "longest script ms"
	h := holding{leases: leases, length: length}
	w := workload{
		name:     fmt.Sprintf("held/%d", leases),
		spans:    heldTime,
		subjects: []subject{h.subject(holdfastName), h.subject(singleName), h.subject(redissonName)},
		figures: []figure{
			{"bytes per lease", atMost(400), of(holdfastName, bytes)},
			{"goroutines per lease", atMost(0.001), of(holdfastName, goroutines)},
			{"client CPU ÷ " + singleName, atMost(0.15), ratio(holdfastName, singleName, client)},
			{"server CPU ÷ " + singleName, atMost(0.5), ratio(holdfastName, singleName, server)},
			{block, atMost(1), of(holdfastName, block)},
			{block + ", " + singleName, target{}, of(singleName, block)}, // of one key: what is not microseconds is the machine's
			{often, target{}, of(holdfastName, often)},
			{often + ", " + singleName, target{}, of(singleName, often)},
			{"client CPU ÷ Redisson", target{}, ratio(holdfastName, redissonName, client)},
			{"server CPU ÷ Redisson", target{}, ratio(holdfastName, redissonName, server)},
			{block + ", Redisson", target{}, of(redissonName, block)},
			{"bytes per lease, Redisson", target{}, of(redissonName, bytes)},
		},
	}
	if leases <= 20_000 { // a goroutine for each lease
		w.subjects = append(w.subjects, h.subject(rueidisName))
		w.figures = append(w.figures,
			figure{"client CPU ÷ rueidislock", target{}, ratio(holdfastName, rueidisName, client)},
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
	return subject{name: name, rival: isRival(name), needs: needs(name), run: func(s *server, d time.Duration) (sample, error) {
		task := childTask{
			Addr: s.addr, Library: name, Role: keepRole, Count: h.leases,
			Lease: h.length, Duration: time.Duration(h.intervals(d)) * h.interval(),
		}
		members, end, err := crew{inFlight}.start(task)
		defer end()
		if err != nil {
			return nil, err
		}
		var r childResult
		got, err := h.watch(s, d, func() (float64, error) {
			all, err := together(members)
			if err != nil {
				return 0, err
			}
			r = all[0]
			return r.CPU, nil
		})
		if err != nil {
			return nil, err
		}
		maps.Copy(got, r.Figures)
		return got, h.allThere(s)
	}}
}

// allThere tells whether the keys are still held.
func (h holding) allThere(s *server) error {
	reply, err := s.do("DBSIZE")
	if err != nil {
		return err
	}
	n, err := reply.AsInt64()
	if err == nil && n < int64(h.leases) {
		err = fmt.Errorf("%w: of %d leases %d were lost", errIncomplete, h.leases, int64(h.leases)-n)
	}
	return err
}

// keepJob is keys that are held.
type keepJob struct {
	holding
	locker
	kept []lease
	keys []floorKey // of a program that renews each by a call; nil otherwise
	each added
	time time.Duration
}

func (c childTask) prepareKeep() (_ job, err error) {
	j := &keepJob{holding: holding{leases: c.Count, length: c.Lease}, time: c.Duration}
	if c.Library == singleName {
		return j, j.keepOneByOne(c.Addr)
	}
	if j.locker, err = libraries[c.Library](c.Addr, c.Lease); err != nil {
		return nil, err
	}
	if j.kept, j.each, err = j.take(j.locker.(holder)); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

// keepOneByOne takes the keys for the program that holdfast is compared with.
func (j *keepJob) keepOneByOne(addr string) error {
	f, err := newFloor(addr, j.length)
	if err != nil {
		return err
	}
	j.locker, j.keys = f, make([]floorKey, j.leases)
	return j.holding.each(func(i int) error {
		j.keys[i] = newFloorKey(j.key(i))
		return f.acquire(j.keys[i])
	})
}

func (j *keepJob) work() (childResult, error) {
	if j.keys != nil {
		f := j.locker.(*floor)
		return childResult{}, j.renewing(int(j.time/j.interval()), func() error {
			return j.holding.each(func(i int) error { return f.renew(j.keys[i]) })
		})
	}
	time.Sleep(j.time)
	for _, l := range j.kept {
		if err := l.Err(); err != nil {
			return childResult{}, err
		}
	}
	return childResult{Figures: sample{"bytes/lease": j.each.heap + j.each.stack, "goroutines/lease": j.each.goroutines}}, nil
}

// take has l hold the keys, and tells what each brought with it.
func (h holding) take(l holder) (kept []lease, each added, err error) {
	if err := l.cycle("warm")(func() {}); err != nil {
		return nil, each, err
	}
	kept = make([]lease, h.leases)
	before := memoryNow()
	err = h.each(func(i int) (err error) {
		kept[i], err = l.hold(h.key(i))
		return err
	})
	if err != nil {
		return nil, each, err
	}
	return kept, memoryNow().since(before, h.leases), nil
}

// renewing has all called once in every interval.
func (h holding) renewing(intervals int, all func() error) error {
	for range intervals {
		next := time.Now().Add(h.interval())
		if err := all(); err != nil {
			return err
		}
		time.Sleep(time.Until(next))
	}
	return nil
}

// watch measures what the renewals cost while f runs, which tells the CPU that the
// client used.
func (h holding) watch(s *server, d time.Duration, f func() (float64, error)) (sample, error) {
	if _, err := s.do("SLOWLOG", "RESET"); err != nil {
		return nil, err
	}
	var client, server float64
	begin := time.Now()
	calls, err := s.callsDuring(func() (err error) {
		server, err = s.cpuDuring(func() (err error) {
			client, err = f()
			return err
		})
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

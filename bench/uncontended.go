package main

import (
	"fmt"
	"time"
)

// usualLease is the lease wherever it does not matter: rlock's default.
const usualLease = 30 * time.Second

// uncontended is goroutines with a key of their own each.
func uncontended(goroutines int) workload {
	w := load{goroutines: goroutines}
	const speed = "cycles/s"
	return workload{
		name: fmt.Sprintf("uncontended/%d", goroutines),
		subjects: []subject{
			w.uncontended(holdfastName), w.uncontended(floorName), w.uncontended(rueidisName),
		},
		figures: []figure{
			{name: speed, value: of(holdfastName, speed)},
			{"÷ floor", atLeast(0.9), ratio(holdfastName, floorName, speed)},
			{"÷ rueidislock", atLeast(1.2), ratio(holdfastName, rueidisName, speed)},
			{"EVALSHA per cycle", exactly(2), of(holdfastName, "EVALSHA/cycle")},
			{"other commands per cycle", exactly(0), of(holdfastName, "other commands/cycle")},
			{"allocations per cycle", atMost(25), of(holdfastName, "allocations/cycle")},
			{"of it the floor's", target{}, of(floorName, "allocations/cycle")},
			{"bytes per cycle", atMost(2048), of(holdfastName, "bytes/cycle")},
			{"of it the floor's", target{}, of(floorName, "bytes/cycle")},
		},
	}
}

// fairUncontended is the same for the fair lock.
func fairUncontended(goroutines int) workload {
	w := load{goroutines: goroutines}
	const speed = "cycles/s"
	return workload{
		name:     fmt.Sprintf("fair/uncontended %d", goroutines),
		subjects: []subject{w.uncontended(fairName), w.uncontended(holdfastName)},
		figures: []figure{
			{name: speed, value: of(fairName, speed)},
			{"÷ rlock", atLeast(0.8), ratio(fairName, holdfastName, speed)},
			{"EVALSHA per cycle", exactly(2), of(fairName, "EVALSHA/cycle")},
			{"other commands per cycle", exactly(0), of(fairName, "other commands/cycle")},
			{"allocations per cycle", atMost(25), of(fairName, "allocations/cycle")},
			{"bytes per cycle", atMost(2048), of(fairName, "bytes/cycle")},
		},
	}
}

func (w load) uncontended(name string) subject {
	return subject{name: name, rival: name == rueidisName, run: func(s *server, d time.Duration) (sample, error) {
		l, err := libraries[name](s.addr, usualLease)
		if err != nil {
			return nil, err
		}
		defer l.close()
		if _, err := w.run(l, d/5); err != nil {
			return nil, err
		}
		var t tally
		var objects, bytes uint64
		sent, err := s.callsDuring(func() (err error) {
			o, b := allocated()
			t, err = w.run(l, d)
			objects, bytes = allocated()
			objects, bytes = objects-o, bytes-b
			return err
		})
		all := float64(t.all)
		return sample{
			"cycles/s":             float64(t.cycles) / d.Seconds(),
			"EVALSHA/cycle":        float64(sent["evalsha"]) / all,
			"other commands/cycle": float64(sent.sent()-sent["evalsha"]) / all,
			"allocations/cycle":    float64(objects) / all,
			"bytes/cycle":          float64(bytes) / all,
		}, err
	}}
}

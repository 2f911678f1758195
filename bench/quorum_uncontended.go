package main

import (
	"fmt"
	"time"
)

// quorumUncontended is goroutines with a key of their own each, on a quorum. than
// is what its speed is to be beside redsync's, in its fastest setting and in that of
// its README.
func quorumUncontended(goroutines int, than target) workload {
	w := load{goroutines: goroutines}
	const speed, client = "cycles/s", "client CPU µs/cycle"
	const servers, p99 = "server CPU µs/cycle", "lock p99 µs"
	return workload{
		name:     fmt.Sprintf("quorum/uncontended %d", goroutines),
		subjects: []subject{w.quorum(multilockName), w.quorum(redsyncName), w.quorum(redsyncGoRedisName)},
		figures: []figure{
			{name: speed, value: of(multilockName, speed)},
			{speed + " ÷ redsync", than, ratio(multilockName, redsyncName, speed)},
			{speed + " ÷ redsync on go-redis", than, ratio(multilockName, redsyncGoRedisName, speed)},
			{client, target{}, of(multilockName, client)},
			{client + " ÷ redsync", target{}, ratio(multilockName, redsyncName, client)},
			{"all nodes' CPU µs/cycle", target{}, of(multilockName, servers)},
			{"all nodes' CPU µs/cycle ÷ redsync", target{}, ratio(multilockName, redsyncName, servers)},
			{p99, target{}, of(multilockName, p99)},
			{p99 + " ÷ redsync", target{}, ratio(multilockName, redsyncName, p99)},
			{"EVALSHA per cycle and node", atMost(2), of(multilockName, "EVALSHA/cycle")},
			{"other commands per cycle and node", atMost(0.01), of(multilockName, "other commands/cycle")},
			{"allocations per cycle", target{}, of(multilockName, "allocations/cycle")},
			{"bytes per cycle", target{}, of(multilockName, "bytes/cycle")},
		},
	}
}

// quorum runs the load on nodes of its own.
func (w load) quorum(name string) subject {
	return subject{name: name, rival: name != multilockName, run: func(_ *server, d time.Duration) (sample, error) {
		all, err := startNodes(masters)
		if err != nil {
			return nil, err
		}
		defer all.stop()
		l, err := quorumLibraries[name](all.addrs(), usualLease)
		if err != nil {
			return nil, err
		}
		defer l.close()
		if _, err := w.run(l, d/5); err != nil {
			return nil, err
		}
		var t tally
		var objects, bytes uint64
		var cpu, servers float64
		sent, err := all.callsDuring(func() error {
			o, b := allocated()
			var err error
			servers, err = cpuDuring(all.cpu, func() (err error) {
				cpu, err = cpuDuring(cpuNow, func() (err error) {
					t, err = w.run(l, d)
					return err
				})
				return err
			})
			objects, bytes = allocated()
			objects, bytes = objects-o, bytes-b
			return err
		})
		if err != nil {
			return nil, err
		}
		cycles, each := float64(t.all), float64(t.all*masters)
		got := sample{
			"cycles/s":             float64(t.cycles) / d.Seconds(),
			"client CPU µs/cycle":  cpu / cycles * 1e6,
			"server CPU µs/cycle":  servers / cycles * 1e6,              // of all nodes
			"commands/cycle":       float64(sent.sentBy(name)) / cycles, // likewise
			"EVALSHA/cycle":        float64(sent["evalsha"]) / each,
			"other commands/cycle": float64(sent.sentBy(name)-sent["evalsha"]) / each,
			"allocations/cycle":    float64(objects) / cycles,
			"bytes/cycle":          float64(bytes) / cycles,
			"Jain of goroutines":   jainOf(t.shares),
		}
		got.addWaits(t.waits)
		return got, nil
	}}
}

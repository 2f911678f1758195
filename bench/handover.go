package main

import (
	"fmt"
	"slices"
)

// handover is a key that processes want, first come, first served, compared with
// a ring of the same processes and goroutines.
//
// target is for the fair lock with its defaults, straight for the one that goes
// through Redis each time.
func handover(count, goroutines int, whole, straight target) workload {
	c := crew(slices.Repeat([]int{goroutines}, count))
	const speed, sent, even = "cycles/s", "commands/cycle", "Jain's index"
	const server, client = "server CPU µs/cycle", "client CPU µs/cycle"
	return workload{
		name: fmt.Sprintf("fair/%d × %d", count, goroutines),
		subjects: []subject{
			c.subject(fairName, fairName, 0),
			c.subject(fairStraightName, fairStraightName, 0),
			c.subject(ringName, ringName, 0),
		},
		figures: []figure{
			{"hand-overs/s", target{}, of(fairName, speed)},
			{"hand-overs/s, ring", target{}, of(ringName, speed)},
			{"÷ ring", whole, ratio(fairName, ringName, speed)},
			{"no hand-over ÷ ring", straight, ratio(fairStraightName, ringName, speed)},
			{sent, target{}, of(fairName, sent)},
			{sent + ", no hand-over", atMost(2.1), of(fairStraightName, sent)},
			{server + " ÷ ring", target{}, ratio(fairName, ringName, server)},
			{client + " ÷ ring", target{}, ratio(fairName, ringName, client)},
			{server + ", ring", target{}, of(ringName, server)},
			{client + ", ring", target{}, of(ringName, client)},
			{even, target{}, of(fairName, even)},
		},
	}
}

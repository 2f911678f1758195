package main

import "fmt"

// handover is a key that processes want, first come, first served, compared with
// a ring of the same processes and goroutines.
//
// target is for the fair lock with its defaults, straight for the one that goes
// through Redis each time.
func handover(count, goroutines int, whole, straight target) workload {
	const speed, sent, even = "cycles/s", "commands/cycle", "Jain's index"
	const server, client = "server CPU µs/cycle", "client CPU µs/cycle"
	names := []string{fairName, fairStraightName, ringName, queueRingName}
	if count <= 8 { // 64 processes of a rival's would be the machine's test, not the rival's
		names = append(names, fifoRivals()...)
	}
	c := crewOf(count, goroutines)
	return workload{
		name:     fmt.Sprintf("fair/%d × %d", count, goroutines),
		spans:    float64(c.spans()),
		subjects: c.subjects(work{hot: true}, names...),
		figures: []figure{
			{"hand-overs/s", target{}, of(fairName, speed)},
			{"hand-overs/s, ring", target{}, of(ringName, speed)},
			{"÷ ring", whole, ratio(fairName, ringName, speed)},
			{"no hand-over ÷ ring", straight, ratio(fairStraightName, ringName, speed)},
			{"no hand-over ÷ ring with a queue", target{}, ratio(fairStraightName, queueRingName, speed)},
			{"ring with a queue ÷ ring", target{}, ratio(queueRingName, ringName, speed)},
			{server + ", ring with a queue ÷ ring", target{}, ratio(queueRingName, ringName, server)},
			{"÷ best rival", target{}, beside(fairName, speed)},
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

package main

import (
	"slices"
	"time"
)

// workloads lists all workloads in the order of the table.
func workloads() []workload {
	var all []workload
	all = append(all, uncontended(1), uncontended(8), uncontended(64), uncontended(512),
		hot(64, 0), hot(64, 100*time.Microsecond), hot(64, time.Millisecond), hot(64, 10*time.Millisecond),
		processes(2, 8, 0), processes(8, 8, 0), processes(8, 8, 100*time.Microsecond), processes(8, 8, time.Millisecond),
		processes(8, 8, 10*time.Millisecond), processes(8, 8, 20*time.Millisecond))
	all = append(all, oneHot(8, 8, 64), refused(64), waiting(1000), waiting(10_000), held(20_000, heldLease), held(100_000, heldLease))
	all = append(all, sale())
	return slices.Concat(all, recoveries(), fairWorkloads(), quorumWorkloads())
}

// fairWorkloads are those of the fair lock.
func fairWorkloads() []workload {
	ring := atLeast(0.75)
	return []workload{
		fairUncontended(1), fairUncontended(16), fairUncontended(64),
		handover(2, 1, ring, ring), handover(8, 1, ring, ring), handover(64, 1, ring, ring),
		handover(8, 8, atLeast(1.2), target{}), handover(1, 64, atLeast(4), target{}),
		queues(10, 100, 1000, 10_000),
		fairWaiting(1000),
	}
}

// quorumWorkloads are those of the lock on a quorum.
func quorumWorkloads() []workload {
	return []workload{
		quorumUncontended(1, target{}), quorumUncontended(64, atLeast(2)),
		far(),
		quorumHeld(20_000, heldLease),
	}
}

// quickWorkloads are the main three.
func quickWorkloads() []workload {
	return []workload{uncontended(64), hot(64, 0), processes(8, 8, 0)}
}

// mainNames are those that fit on one plot: the main three and a queue.
func mainNames() (names []string) {
	for _, w := range append(quickWorkloads(), handover(8, 8, target{}, target{})) {
		names = append(names, w.name)
	}
	return names
}

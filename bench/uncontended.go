package main

import (
	"fmt"
	"time"
)

// usualLease is the lease wherever it does not matter: rlock's default.
const usualLease = 30 * time.Second

// uncontended is goroutines with a key of their own each.
func uncontended(goroutines int) workload {
	const speed = "cycles/s"
	names := append([]string{holdfastName, floorName, setFloorName}, rivals()...)
	return workload{
		name:     fmt.Sprintf("uncontended/%d", goroutines),
		subjects: crew{goroutines}.subjects(work{}, names...),
		figures: []figure{
			{name: speed, value: of(holdfastName, speed)},
			{"÷ floor", atLeast(0.9), ratio(holdfastName, floorName, speed)},
			{"÷ floor of SET", target{}, ratio(holdfastName, setFloorName, speed)},
			{"÷ best rival", atLeast(1.2), beside(holdfastName, speed)},
			{"EVALSHA per cycle", atMost(2), of(holdfastName, "EVALSHA/cycle")},
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
	const speed = "cycles/s"
	names := append([]string{fairName, holdfastName}, fifoRivals()...)
	return workload{
		name:     fmt.Sprintf("fair/uncontended %d", goroutines),
		subjects: crew{goroutines}.subjects(work{}, names...),
		figures: []figure{
			{name: speed, value: of(fairName, speed)},
			{"÷ rlock", atLeast(0.8), ratio(fairName, holdfastName, speed)},
			{"÷ best rival", target{}, beside(fairName, speed)},
			{"EVALSHA per cycle", atMost(2), of(fairName, "EVALSHA/cycle")},
			{"other commands per cycle", exactly(0), of(fairName, "other commands/cycle")},
			{"allocations per cycle", atMost(25), of(fairName, "allocations/cycle")},
			{"bytes per cycle", atMost(2048), of(fairName, "bytes/cycle")},
		},
	}
}

package main

import (
	"fmt"
	"time"
)

// processes is a key that several processes want.
//
// Ideal is that the processes take turns, so that each is without service for
// one turn of every other. A turn with local hand-over is its tenure, or one
// section if that is longer; without it, a turn is one cycle as measured.
func processes(count, goroutines int, section time.Duration) workload {
	c := crewOf(count, goroutines)
	const speed, sent, fair, gap = "cycles/s", "commands/cycle", "Jain's index", "longest without service ÷ ideal"
	toRival := target{}
	if section == 0 && count == 8 {
		toRival = atLeast(50)
	}
	names := append([]string{holdfastName, noHandoverName, fairName}, rivals()...)
	return workload{
		name:     fmt.Sprintf("processes/%d × %d × %v", count, goroutines, section),
		subjects: c.subjects(work{hot: true, section: section}, names...),
		figures: []figure{
			{name: speed, value: of(holdfastName, speed)},
			{"÷ through Redis", target{}, ratio(holdfastName, noHandoverName, speed)},
			{"÷ best rival", toRival, beside(holdfastName, speed)},
			{besidePeersName, atLeast(1), besidePeers(holdfastName, speed)},
			{sent, atMost(4), of(holdfastName, sent)},
			{fair, atLeast(0.95), of(holdfastName, fair)},
			{gap, atMost(3), of(holdfastName, gap)},
			{sent + ", no hand-over", target{}, of(noHandoverName, sent)},
			{fair + ", no hand-over", target{}, of(noHandoverName, fair)},
			{gap + ", no hand-over", target{}, of(noHandoverName, gap)},
		},
	}
}

// subjects are libraries that do the same work.
func (c crew) subjects(w work, libraries ...string) (all []subject) {
	for _, name := range libraries {
		all = append(all, c.subject(name, name, w))
	}
	return all
}

// oneHot is one process with many goroutines beside others with one or two
// each, compared with as many processes that have equally many, and with the
// one alone, by the cycles of all.
func oneHot(count, goroutines, hot int) workload {
	few := make(crew, count)
	for i := range few {
		few[i] = 1 + i%2
	}
	few[0] = hot
	const beside, even, alone, speed = "beside few", "even", "alone", "cycles/s"
	w := work{hot: true}
	return workload{
		name: fmt.Sprintf("processes/one of %d beside %d of 1 or 2", hot, count-1),
		subjects: []subject{
			few.subject(beside, holdfastName, w),
			crewOf(count, goroutines).subject(even, holdfastName, w),
			crew{hot}.subject(alone, holdfastName, w),
		},
		figures: []figure{
			{name: speed, value: of(beside, speed)},
			{fmt.Sprintf("÷ %d × %d", count, goroutines), atLeast(0.9), ratio(beside, even, speed)},
			{fmt.Sprintf("÷ the %d alone", hot), target{}, ratio(beside, alone, speed)},
			{"share of the hot process", target{}, of(beside, "share of the first process")},
		},
	}
}

package main

import (
	"fmt"
	"time"
)

// hot is goroutines of one process that all want one key.
//
// In a queue that is first come, first served, one who has just unlocked waits
// for one section of each of the others: that, with sections as long as they
// were measured, is the ideal wait.
func hot(goroutines int, section time.Duration) workload {
	const speed, wait = "cycles/s", "p99 wait ÷ ideal"
	names := append([]string{holdfastName, noHandoverName, fairName}, rivals()...)
	w := workload{
		name:     fmt.Sprintf("hot/%d × %v", goroutines, section),
		subjects: crew{goroutines}.subjects(work{hot: true, section: section}, names...),
		figures:  []figure{{name: speed, value: of(holdfastName, speed)}},
	}
	through, rival := ratio(holdfastName, noHandoverName, speed), beside(holdfastName, speed)
	if section > 0 {
		w.figures = append(w.figures,
			figure{"÷ through Redis", target{}, through},
			figure{"÷ best rival", target{}, rival},
			figure{besidePeersName, atLeast(1), besidePeers(holdfastName, speed)},
			figure{wait, atMost(2), of(holdfastName, wait)},
			figure{wait + ", through Redis", target{}, of(noHandoverName, wait)})
		return w
	}
	w.figures = append(w.figures,
		figure{"the better of ÷ 1 M/s and ÷ (100 × through Redis)", atLeast(1), func(r round) float64 {
			return max(r[holdfastName][speed]/1e6, through(r)/100)
		}},
		figure{"÷ through Redis", target{}, through},
		figure{"÷ best rival", atLeast(100), rival})
	return w
}

// peers are the rivals that promise as much as rlock does over several processes: see
// RIVALS.md.
func peers() []string { return []string{rueidisName, etcdName, zookeeperName} }

const besidePeersName = "÷ best rival that promises as much"

// besidePeers is beside, of those rivals alone.
func besidePeers(subject, name string) func(round) float64 {
	return func(r round) float64 {
		few := round{subject: r[subject]}
		for _, peer := range peers() {
			few[peer] = r[peer]
		}
		return beside(subject, name)(few)
	}
}

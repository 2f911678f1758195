package report

import (
	"math"
	"slices"
	"strings"
)

// target is a bound for a figure, or for its ratio to the same figure of another subject.
type target struct {
	workload string // the beginning of the names of its workloads
	subject  string
	figure   string
	over     string // the other subject, bestRival or bestPeer; none: the figure itself
	sign     string
	bound    float64
}

const (
	bestRival = "best rival"
	bestPeer  = "best rival that promises as much"

	speed    = "cycles/s"
	commands = "commands/cycle"
	client   = "client CPU µs/renewal"
	served   = "ms to serve all"
	queue    = "ring with a queue"
	single   = "a call per lease"
)

// nodeLimit is 1.1 × multilock.DefaultNodeTimeout, in ms: a tenth for the network and the timers.
const nodeLimit = 55

var targets = []target{
	{"uncontended/", "holdfast", speed, "floor", "≥", 0.9},
	{"uncontended/", "holdfast", speed, bestRival, "≥", 1.2},
	{"uncontended/", "holdfast", commands, "", "≤", 2},
	{"uncontended/", "holdfast", "allocations/cycle", "", "≤", 25},
	{"uncontended/", "holdfast", "bytes/cycle", "", "≤", 2048},

	{"hot/64 × 0s", "holdfast", speed, bestRival, "≥", 100},
	{"hot/", "holdfast", speed, bestPeer, "≥", 1},
	{"hot/64 × 1", "holdfast", "p99 wait ÷ ideal", "", "≤", 2},

	{"processes/8 × 8 × 0s", "holdfast", speed, bestRival, "≥", 50},
	{"processes/", "holdfast", speed, bestPeer, "≥", 1},
	{"processes/", "holdfast", commands, "", "≤", 4},
	{"processes/", "holdfast", "Jain's index", "", "≥", 0.95},
	{"processes/", "holdfast", "longest without service ÷ ideal", "", "≤", 3},
	{"processes/one", "beside few", speed, "even", "≥", 0.9},

	{"try-lock refused/", "holdfast", speed, bestRival, "≥", 1},
	{"try-lock refused/", "holdfast", commands, "", "≤", 1},

	{"waiting/", "holdfast", "commands/s", "", "≤", 0},
	{"waiting/", "holdfast", "bytes/waiter", "", "≤", 1024},
	{"waiting/", "holdfast", "goroutines/waiter", "", "≤", 0.001},
	{"waiting/", "holdfast", served, bestRival, "≤", 0.1},

	{"held/", "holdfast", "bytes/lease", "", "≤", 400},
	{"held/", "holdfast", "goroutines/lease", "", "≤", 0.001},
	{"held/", "holdfast", client, single, "≤", 0.15},
	{"held/", "holdfast", "server CPU µs/renewal", single, "≤", 0.5},
	{"held/", "holdfast", "longest script ms", "", "≤", 1},

	{"read ", "rwlock", speed, bestRival, "≥", 1},
	{"read ", "rwlock", speed, "holdfast", "≥", 1},
	{"permits ", "semaphore", speed, bestRival, "≥", 1},
	{"permits ", "semaphore", speed, "holdfast", "≥", 1},

	{"flash sale/", "holdfast", speed, bestRival, "≥", 1},
	{"recovery/holder killed", "holdfast", recovered, "", "≤", 4400}, // of a lease of 4 s
	{"recovery/holder killed", "fair", recovered, "", "≤", 4400},
	{"election/", "holdfast", recovered, bestRival, "≤", 1},
	{"election/leader killed", "holdfast", recovered, "", "≤", 4400},

	{"fair/uncontended", "fair", speed, "holdfast", "≥", 0.8},
	{"fair/uncontended", "fair", commands, "", "≤", 2},
	{"fair/uncontended", "fair", "allocations/cycle", "", "≤", 25},
	{"fair/uncontended", "fair", "bytes/cycle", "", "≤", 2048},
	{"fair/2 × 1", "fair", speed, queue, "≥", 0.85},
	{"fair/8 × 1", "fair", speed, queue, "≥", 0.85},
	{"fair/64 × 1", "fair", speed, queue, "≥", 0.85},
	{"fair/8 × 8", "fair", speed, "ring", "≥", 1.2},
	{"fair/1 × 64", "fair", speed, "ring", "≥", 4},
	{"fair/", "fair, no handover", commands, "", "≤", 2.1},
	{"fair/queues", "queue of 100", "server CPU µs/cycle", "queue of 10", "≤", 1.2},
	{"fair/queues", "queue of 1000", "server CPU µs/cycle", "queue of 10", "≤", 1.2},
	{"fair/queues", "queue of 10000", "server CPU µs/cycle", "queue of 10", "≤", 1.2},
	{"fair/waiting", "fair", "commands/s", "", "≤", 1.2},
	{"fair/waiting", "fair", "bytes/waiter", "", "≤", 1024},
	{"fair/waiting", "fair", "goroutines/waiter", "", "≤", 0.001},

	{"quorum/uncontended 1", "multilock", speed, "redsync", "≥", 0.9},
	{"quorum/uncontended 64", "multilock", speed, "redsync", "≥", 2},
	{"quorum/uncontended 64", "multilock", speed, "redsync on go-redis", "≥", 2},
	{"quorum/uncontended", "multilock", commands, "", "≤", 10.05}, // two for each of five nodes, and a check of them now and then
	{"quorum/2ms", "multilock", "lock ms", "holdfast", "≤", 1.3},
	{"quorum/2ms", "multilock", "cycle ms", "holdfast", "≤", 1.3},
	{"quorum/2ms", "multilock", "lock, hang ÷ none", "", "≤", 1.1},
	{"quorum/2ms", "multilock", "cycle, hang ÷ none", "", "≤", 1.1},
	{"quorum/2ms", "multilock", "first lock, hang not known: ms more", "", "≤", nodeLimit},
	{"quorum/2ms", "multilock", "slowest until known: ms more", "", "≤", nodeLimit},
	{"quorum/2ms", "multilock", "first lock of a new locker: ms more", "", "≤", nodeLimit},
	{"quorum/held", "multilock", "calls/s", single + " and node", "≤", 0.25},
	{"quorum/held", "multilock", client, single + " and node", "≤", 0.25},
}

// value returns what must reach the bound, in one round.
func (t target) value(r Round) float64 {
	v := r.of(t.subject, t.figure)
	switch t.over {
	case "":
		return v
	case bestRival:
		return v / best(r, t.figure, rivals)
	case bestPeer:
		return v / best(r, t.figure, peers)
	}
	return v / r.of(t.over, t.figure)
}

// best returns the best figure among some subjects of a round; NaN if none is known. A speed of
// 0 does not count.
func best(r Round, figure string, among []string) float64 {
	var all []float64
	for _, s := range among {
		if v := r.of(s, figure); v > 0 {
			all = append(all, v)
		}
	}
	switch less := slices.ContainsFunc(columns, func(c column) bool { return c.figure == figure && c.less }); {
	case len(all) == 0:
		return math.NaN()
	case less:
		return slices.Min(all)
	default:
		return slices.Max(all)
	}
}

func (t target) name() string {
	if t.over == "" {
		return t.subject + ": " + t.figure
	}
	return t.subject + ": " + t.figure + " ÷ " + t.over
}

func (t target) met(v float64) bool {
	if t.sign == "≥" {
		return v >= t.bound
	}
	return v <= t.bound
}

// targets returns those of the workload whose figures are known.
func (w Workload) targets() (all []target) {
	for _, t := range targets {
		if strings.HasPrefix(w.Name, t.workload) && len(w.known(t.value)) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// Unknown returns the targets for subjects of the workload whose figures are not known.
func (w Workload) Unknown() (names []string) {
	known := w.targets()
	for _, t := range targets {
		if strings.HasPrefix(w.Name, t.workload) && slices.Contains(w.Subjects, t.subject) && !slices.Contains(known, t) &&
			(t.over == "" || slices.Contains(w.Subjects, t.over)) {
			names = append(names, t.name())
		}
	}
	return names
}

package main

import (
	"slices"
	"strings"
	"time"
)

// brief is a row of the README's table: one subject of a workload beside the others.
type brief struct {
	work     string // as the README calls it
	workload string
	ours     string // the subject
	figure   string
	unit     string
	less     bool   // less is better
	floor    string // the subject that is the floor, if there is one
	redisson string // the kind of its locks that promises the same
	quiet    bool   // there is a row only where a rival is better
}

// briefs are the rows: those of the main workloads, and one at least of each other
// that has a rival.
func briefs() []brief {
	own := brief{ours: holdfastName, figure: "cycles/s", floor: floorName, redisson: redissonName}
	speed, tries, quorum, customers := own, own, own, own
	speed.floor, quorum.floor = "", ""
	tries.floor, tries.unit = "", "tries/s"
	quorum.ours = multilockName
	customers.floor, customers.unit = "", "customers/s"
	ring := brief{ours: fairName, figure: "cycles/s", floor: ringName, redisson: redissonFairName}
	inOrder := ring
	inOrder.floor = ""
	serve := brief{ours: holdfastName, figure: waitServed, unit: "ms", less: true, redisson: redissonName}
	inOrderServe := serve
	inOrderServe.ours, inOrderServe.redisson = fairName, redissonFairName
	renew := brief{ours: holdfastName, figure: "client CPU µs/renewal", unit: "µs", less: true, floor: singleName, redisson: redissonName}
	renewing, keep := renew, renew
	renewing.figure = "server CPU µs/renewal"
	keep.floor, keep.figure, keep.unit = "", "bytes/lease", "bytes"

	away := func(figure string) brief {
		return brief{ours: multilockName, figure: figure, unit: "ms", less: true, redisson: redissonName}
	}

	row := func(b brief, work string, w workload) brief {
		b.work, b.workload = work, w.name
		return b
	}
	const ms = time.Millisecond
	all := []brief{
		row(own, "own keys, 1 goroutine", uncontended(1)),
		row(own, "own keys, 64", uncontended(64)),
		row(own, "own keys, 512", uncontended(512)),
		row(speed, "one key, 64 in one process", hot(64, 0)),
		row(speed, "one key, 64 in one process, 1 ms each", hot(64, ms)),
		row(speed, "one key, 64 in one process, 10 ms each", hot(64, 10*ms)),
		row(speed, "one key, 8 processes × 8", processes(8, 8, 0)),
		row(speed, "one key, 8 processes × 8, 1 ms each", processes(8, 8, ms)),
		row(speed, "one key, 8 processes × 8, 10 ms each", processes(8, 8, 10*ms)),
		row(speed, "one key, 8 processes × 8, 20 ms each", processes(8, 8, 20*ms)),
		row(ring, "`fair`, 8 processes × 1", handover(8, 1, target{}, target{})),
		row(ring, "`fair`, 8 processes × 8", handover(8, 8, target{}, target{})),
		row(tries, "try-lock refused, 64", refused(64)),
		row(serve, "time to serve 1000 waiters", waiting(1000)),
		row(renew, "renewal of one of 20 000 leases, CPU", held(20_000, heldLease)),
		row(customers, "flash sale, until p99 > 100 ms", sale()),
		row(quorum, "`multilock` on 5 masters, own keys, 64", quorumUncontended(64, target{})),
	}
	more := []brief{
		row(own, "own keys, 8", uncontended(8)),
		row(speed, "one key, 64 in one process, 0.1 ms each", hot(64, ms/10)),
		row(speed, "one key, 2 processes × 8", processes(2, 8, 0)),
		row(speed, "one key, 8 processes × 8, 0.1 ms each", processes(8, 8, ms/10)),
		row(inOrder, "`fair`, own keys, 1 goroutine", fairUncontended(1)),
		row(inOrder, "`fair`, own keys, 16", fairUncontended(16)),
		row(inOrder, "`fair`, own keys, 64", fairUncontended(64)),
		row(ring, "`fair`, 2 processes × 1", handover(2, 1, target{}, target{})),
		row(ring, "`fair`, 64 in one process", handover(1, 64, target{}, target{})),
		row(inOrderServe, "`fair`, time to serve 1000 waiters", fairWaiting(1000)),
		row(serve, "time to serve 10 000 waiters", waiting(10_000)),
		row(renewing, "renewal of one of 20 000 leases, CPU of Redis", held(20_000, heldLease)),
		row(keep, "memory of one of 20 000 leases", held(20_000, heldLease)),
		row(renew, "renewal of one of 100 000 leases, CPU", held(100_000, heldLease)),
		row(renewing, "renewal of one of 100 000 leases, CPU of Redis", held(100_000, heldLease)),
		row(keep, "memory of one of 100 000 leases", held(100_000, heldLease)),
		row(quorum, "`multilock` on 5 masters, own keys, 1 goroutine", quorumUncontended(1, target{})),
		row(away("lock ms"), "`multilock`, masters 2 ms off: lock", far()),
		row(away("cycle ms"), "`multilock`, masters 2 ms off: lock and unlock", far()),
		row(away("lock ms, two hang"), "`multilock`, masters 2 ms off, 2 of 5 hang: lock", far()),
		row(away("cycle ms, two hang"), "`multilock`, masters 2 ms off, 2 of 5 hang: lock and unlock", far()),
	}
	for _, w := range recoveries() {
		b, inOrder := serve, inOrderServe
		b.figure, inOrder.figure = recovered, recovered
		more = append(more, row(b, w.name, w), row(inOrder, "`fair`: "+w.name, w))
	}
	for _, b := range more {
		b.quiet = true
		all = append(all, b)
	}
	return all
}

// saying is a sentence that is said below the table, of some of its rows: of those in
// which a rival is better, why, or always.
type saying struct {
	works  []string
	always bool
	text   string
}

// sayings are all of them. Each row in which a rival is better needs one.
var sayings = []saying{
	{
		works: []string{"own keys, 1 goroutine", "own keys, 64", "own keys, 512"},
		text: "redsync takes a key with a SET, and its release tells nobody, which\n" +
			"  costs Redis less than a hash that can be entered again and a release that wakes who waits (see its CPU in\n" +
			"  `bench/results/table.md`). It renews nothing, and its waiters ask again and again: see the rows of one key.",
	},
	{
		works: []string{"own keys, 8"},
		text: "a SET costs Redis less, as above; and at that commit, two or three of 8\n" +
			"  goroutines shared a call and then waited for each other, which cost more than it saved. Since then,\n" +
			"  up to eight calls under way are each made alone.",
	},
	{
		works: []string{"one key, 64 in one process, 10 ms each"},
		text: "nearly all of a cycle is the section, so all are within a few cycles of each\n" +
			"  other; who asks again and again mostly serves who has just unlocked, while the others sleep.",
	},
	{
		works: []string{"one key, 8 processes × 8, 10 ms each", "one key, 8 processes × 8, 20 ms each"},
		text: "a section lasts as long\n" +
			"  as local hand-over may, or longer, so `rlock` wakes another process in nearly every cycle, and all get equally much; redsync,\n" +
			"  redislock, rueidislock and Redisson often serve who has just unlocked, while the others sleep (see Jain's index and p99 in\n" +
			"  `bench/results/table.md`). ZooKeeper keeps an order, too, and its client uses less CPU for it.",
	},
	{
		works: []string{
			"`multilock` on 5 masters, own keys, 1 goroutine",
			"`multilock`, masters 2 ms off: lock", "`multilock`, masters 2 ms off: lock and unlock",
			"`multilock`, masters 2 ms off, 2 of 5 hang: lock", "`multilock`, masters 2 ms off, 2 of 5 hang: lock and unlock",
		},
		text: "redsync sends each node a SET; a node\n" +
			"  of `multilock` first looks whether it may vote, so that one that has forgotten its locks gives none away, which costs it\n" +
			"  time. Many goroutines share the calls, one alone cannot.",
	},
	{
		works: []string{"memory of one of 20 000 leases"},
		text: "of Redisson it is by how much the heap of a Java\n" +
			"  process that has worked before has grown, which differs much from round to round.",
	},
	{
		works: []string{"recovery/holder killed", "`fair`: recovery/holder killed"},
		text: "all wait for the end of the lease, so it depends on when\n" +
			"  the last renewal was.",
	},
	{
		works: []string{
			"recovery/subscription cut", "`fair`: recovery/subscription cut",
			"recovery/Redis restarted", "`fair`: recovery/Redis restarted",
		},
		text: "holdfast\n" +
			"  subscribes again at once, and looks only then; while Redis is away it waits 5 to 10 ms, and longer after each failure, so that\n" +
			"  many clients do not storm a server that has just come back, where rueidislock tries again at once; redislock has no subscription\n" +
			"  and asks ten times a second, so it depends on when it asks.",
	},
	{
		works:  []string{"try-lock refused, 64"},
		always: true,
		text: "while one goroutine asks Redis, the tries of the other 63 are refused from memory, without a call; of a\n" +
			"  rival, each try asks its server. So it is not the same work.",
	},
}

// of is the sentence with the rows that it is of; "" if there are none.
func (s saying) of(shown, beaten []string) string {
	begin := "- " + worse + " "
	if s.always {
		begin, beaten = "- ", shown
	}
	works := slices.DeleteFunc(slices.Clone(s.works), func(work string) bool { return !slices.Contains(beaten, work) })
	if len(works) == 0 {
		return ""
	}
	return begin + strings.Join(works, "; ") + ": " + s.text + "\n"
}

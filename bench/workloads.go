package main

import (
	"fmt"
	"slices"
	"time"
)

var (
	// rivals promise no order, or cannot be had without one.
	rivals = []string{"rueidislock", "redsync", "redislock", "etcd", "zookeeper", "Redisson", "Redisson spin"}
	oneKey = append([]string{"holdfast", "no handover", "fair"}, rivals...)
	// fifoRivals serve first what came first.
	fifoRivals = []string{"etcd", "zookeeper", "Redisson fair"}
	// sharedReads and severalHolders have a lock that only one may have, too.
	sharedReads    = []string{"rwlock", "holdfast", "Redisson read/write"}
	severalHolders = []string{"semaphore", "holdfast", "Redisson permits", "Redisson semaphore"}
	onQuorum       = []string{"multilock", "redsync", "redsync on go-redis"}
	// deployable can use a Redis Cluster and a Sentinel set.
	deployable = []string{"holdfast", "fair", "rueidislock", "redsync", "Redisson", "Redisson fair"}
)

// workloads lists all of them in the order of the table.
func workloads() []workload {
	onRedis := []string{"holdfast", "fair", "rueidislock", "redsync", "redislock", "Redisson", "Redisson fair"}
	return []workload{
		uncontended(1), uncontended(8), uncontended(64), uncontended(512),
		hot(64, 0), hot(64, 100*time.Microsecond), hot(64, time.Millisecond), hot(64, 10*time.Millisecond),
		processes(2, 8, 0), processes(8, 8, 0), processes(8, 8, 100*time.Microsecond), processes(8, 8, time.Millisecond),
		processes(8, 8, 10*time.Millisecond), processes(8, 8, 20*time.Millisecond),
		oneHot(8, 8, 64),
		tryLock(64),
		waiting("waiting/1000", 1000, 5, append([]string{"holdfast"}, rivals...)...),
		waiting("waiting/10000", 10_000, 5, "holdfast", "rueidislock", "redsync", "redislock", "Redisson"),
		held("held/20000", 20_000, heldLease, nil, "holdfast", single, "Redisson", "rueidislock"),
		held("held/100000", 100_000, heldLease, nil, "holdfast", single, "Redisson"), // rueidislock has a goroutine for each
		readers(99, 1, 64, 0), readers(99, 1, 64, time.Millisecond), readers(99, 8, 8, 0), readers(99, 8, 8, time.Millisecond),
		readers(50, 1, 64, 0), readers(50, 1, 64, time.Millisecond), readers(50, 8, 8, 0), readers(50, 8, 8, time.Millisecond),
		permits(8, 1, 64, 0), permits(8, 1, 64, time.Millisecond), permits(8, 8, 8, 0), permits(8, 8, 8, time.Millisecond),
		sale("holdfast", "fair", "rueidislock", "redsync", "redislock", "etcd", "zookeeper", "Redisson"),

		holderKilled.workload(append(onRedis, "Redisson spin", "etcd", "zookeeper")...),
		connectionsCut.workload(onRedis...),
		redisRestarted.workload(onRedis...),

		leaderKilled.workload("holdfast", "fair", "etcd"),
		leaderResigns.workload("holdfast", "fair", "etcd"),

		fairUncontended(1), fairUncontended(16), fairUncontended(64),
		grants(2, 1), grants(8, 1), grants(64, 1), grants(8, 8), grants(1, 64),
		queues(10, 100, 1000, 10_000),
		waiting("fair/waiting 1000", 1000, 10, "fair", "Redisson fair"), // so long that a heartbeat names all waiters once

		quorumUncontended(1), quorumUncontended(64),
		far(),
		held("quorum/held 20000", 20_000, heldLease, quorum, "multilock", single+" and node"),

		deployed("cluster", startCluster, uncontended(64), deployable...),
		deployed("cluster", startCluster, hot(64, 0), deployable...),
		deployed("cluster", startCluster, processes(2, 8, 0), deployable...),
		deployed("sentinel", startSentinels, uncontended(64), append(deployable, "holdfast, 1 replica")...),
		deployed("sentinel", startSentinels, hot(64, 0), deployable...),
		deployed("sentinel", startSentinels, processes(2, 8, 0), deployable...),
	}
}

// quick are those of -quick: the main three.
var quick = []string{uncontended(64).name, hot(64, 0).name, processes(8, 8, 0).name}

// loads is a workload whose libraries all do the same work.
func loads(name string, libraries []string, f fleet, work task) workload {
	return workload{name, each(libraries, nil, f.does(work))}
}

// uncontended is goroutines with a key of their own each.
func uncontended(goroutines int) workload {
	names := append([]string{"holdfast", "floor", "floor of SET"}, rivals...)
	return loads(fmt.Sprintf("uncontended/%d", goroutines), names, fleet{goroutines}, task{})
}

// hot is goroutines of one process that all want one key.
func hot(goroutines int, section time.Duration) workload {
	return loads(fmt.Sprintf("hot/%d × %v", goroutines, section), oneKey, fleet{goroutines}, task{Hot: true, Section: section})
}

// processes is a key that several processes want.
func processes(count, goroutines int, section time.Duration) workload {
	name := fmt.Sprintf("processes/%d × %d × %v", count, goroutines, section)
	return loads(name, oneKey, fleetOf(count, goroutines), task{Hot: true, Section: section})
}

// oneHot is one process with many goroutines beside others with one or two each, compared
// with as many processes that have equally many, and with the one alone, by the cycles of all.
func oneHot(count, goroutines, hot int) workload {
	few := make(fleet, count)
	for i := range few {
		few[i] = 1 + i%2
	}
	few[0] = hot
	work := task{Hot: true}
	return workload{fmt.Sprintf("processes/one of %d beside %d of 1 or 2", hot, count-1), []subject{
		{"beside few", "holdfast", nil, few.does(work)},
		{"even", "holdfast", nil, fleetOf(count, goroutines).does(work)},
		{"alone", "holdfast", nil, fleet{hot}.does(work)},
	}}
}

// tryLock is goroutines of one process that try a key which another client holds. A cycle
// of it is one try.
func tryLock(goroutines int) workload {
	names := []string{"holdfast", "fair", "rueidislock", "redsync", "redislock", "etcd", "Redisson", "Redisson spin"}
	return loads(fmt.Sprintf("try-lock refused/%d", goroutines), names, fleet{goroutines}, task{Try: true})
}

// readers is a key that processes want, of 100 cycles so many for reading.
func readers(of100, count, goroutines int, section time.Duration) workload {
	const all = 1 << 32 // more than there are
	name := fmt.Sprintf("read %d %%/%d × %d × %v", of100, count, goroutines, section)
	return loads(name, sharedReads, fleetOf(count, goroutines), task{Hot: true, Section: section, Shared: of100, Room: all})
}

// permits is a key that processes want, and that n goroutines may have at once.
func permits(n int64, count, goroutines int, section time.Duration) workload {
	name := fmt.Sprintf("permits %d/%d × %d × %v", n, count, goroutines, section)
	return loads(name, severalHolders, fleetOf(count, goroutines), task{Hot: true, Section: section, Shared: 100, Room: n})
}

// fairUncontended is uncontended for the fair lock.
func fairUncontended(goroutines int) workload {
	names := append([]string{"fair", "holdfast"}, fifoRivals...)
	return loads(fmt.Sprintf("fair/uncontended %d", goroutines), names, fleet{goroutines}, task{})
}

// grants is a key that processes want, first come, first served, compared with a ring of
// the same processes and goroutines.
func grants(count, goroutines int) workload {
	names := []string{"fair", "fair, no handover", "ring", "ring with a queue"}
	if count <= 8 { // 64 processes of a rival's would be the machine's test, not the rival's
		names = append(names, fifoRivals...)
	}
	return loads(fmt.Sprintf("fair/%d × %d", count, goroutines), names, fleetOf(count, goroutines), task{Hot: true})
}

// queues is one key with as many waiters as told, half of them in each of two processes,
// without local handover: what a grant costs the server, compared with the shortest
// queue. Filling and emptying the queue is part of it.
func queues(lengths ...int) workload {
	w := workload{name: fmt.Sprintf("fair/queues of %d to %d", lengths[0], slices.Max(lengths))}
	for _, n := range lengths {
		w.subjects = append(w.subjects, subject{fmt.Sprintf("queue of %d", n), "fair, no handover", nil, fleetOf(2, n/2).does(task{Hot: true})})
	}
	return w
}

// quorumUncontended is uncontended on five masters.
func quorumUncontended(goroutines int) workload {
	return workload{fmt.Sprintf("quorum/uncontended %d", goroutines), each(onQuorum, quorum, fleet{goroutines}.does(task{}))}
}

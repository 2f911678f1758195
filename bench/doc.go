// Command bench measures holdfast beside other libraries and beside the floor, on servers
// that it starts itself. Package report writes the table, the pictures and the README's rows.
// ../docs/benchmarks.md says what is measured and how, and discusses the results.
//
//	go run .                               # everything, about an hour
//	go run . -quick                        # Go libraries on Redis, the main three workloads
//	go run . -run 'uncontended/64|hot'     # some workloads, into results-quick
//	go run . -run quorum/ -out results     # some workloads anew; the others of the folder are kept
//	go run . -redraw                       # table, pictures and README from results/raw.json
//
// # How it works
//
// A workload (workloads.go) has subjects: libraries (library.go, and one file for each), or one
// library with different settings. Each round measures every subject once, and begins with
// another one than the round before (workload.go). A fleet of processes does a subject's work
// (fleet.go). Each process gets a task and answers with a result (worker.go on this side,
// agent.go on the other, java/…/Agent.java for Redisson). What the process does is its role:
// load.go, waiting.go, held.go, sale.go, recovery.go. Only far.go works in this process. A step
// that fails ends the measurement (must.go).
//
// Package redistest starts all Redis servers (deployment.go). On a quorum, a Redis Cluster or a
// Sentinel set, each measurement has servers of its own. process.go starts etcd and ZooKeeper.
//
// Where all want one key, each section counts itself in and out, in one number for all
// processes. Two inside at a time mean that exclusion is broken; or a writer beside others, or
// more than there are permits. What the host of a virtual machine disturbs is measured again,
// twice at most.
//
// # What the rivals and floors are
//
//   - rueidislock: KeyMajority 1 and NoLoopTracking. TryNextAfter is 1 s: on a busy machine, its default of
//     20 ms may leave a waiter asleep.
//   - redsync: one connection to each node, and WithFailFast(true); on a quorum also over go-redis. When Lock
//     gives up after 32 tries, it is called again. It renews no leases.
//   - redislock: PoolSize 64, and the LinearBackoff(100ms) of its example, without the limit of 3 tries. It
//     renews no leases.
//   - etcd: one member (3.4), which writes every change to its files. Each lock or term under way has a
//     session of its own, as goroutines that share a session share the lock.
//   - ZooKeeper: one server with forceSync=no, and a session for each process.
//   - Redisson: a thread for each of our goroutines, pools of 64 connections, and 3 s to warm up. It has
//     deprecated its own Redlock.
//   - floor: two bare scripts on the layout of rlock, without checks; floor of SET: the same for a string
//     and without messages.
//   - ring: a token goes round the same number of processes and goroutines, with one script call and one
//     message for each step; ring with a queue: in two calls for each step, it also makes the least changes
//     that a queue in Redisson's layout needs.
//   - no handover: ours with WithLocalHandover(0).
//
// With 10 000 waiters, etcd's sessions take longer than 30 s to open, and ZooKeeper's clients list all
// waiters. Targets over "the best rival that promises as much" compare rlock with etcd, ZooKeeper and,
// except for the order within a process, rueidislock.
//
// With empty sections, rlock makes more cycles than rwlock where half of them write or where readers are in
// eight processes: it passes a key on in memory, where rwlock asks Redis whose turn it is. From sections of
// 1 ms on, rwlock makes more in all rows.
//
// # Failures
//
// A subject that fails is left out of its round, with a note, and the run goes on. If it was one
// of ours, or a process did not start, the program exits with status 1 at the end.
package main

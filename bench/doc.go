// Command bench measures holdfast beside other libraries and beside the floor,
// on redis-servers that it starts itself, and prints a table of ratios with
// their targets.
//
//	go run .                               # everything, about 22 minutes
//	go run . -run 'uncontended/64|hot'     # some workloads
//	go run . -time 200ms -rounds 1         # does it run?
//	go run . -json raw.json                # the raw figures, too
//	go test -bench .                       # the same cycles as Go benchmarks
//
// # How it measures
//
// A workload has subjects: libraries, or one library with different settings.
// Each round measures every subject once, one after the other, and each round
// begins with another one. A ratio is formed from figures of the same round; the
// table shows the median of the rounds and the smallest and largest. Every
// workload has a redis-server of its own, which is emptied before each subject;
// those of a quorum have five more, new for each subject.
// Machines differ, and ratios within one run differ less: compare those, on a
// machine that does nothing else.
//
// # Subjects
//
//   - holdfast: rlock with its defaults.
//   - no hand-over: rlock with WithLocalHandover(0), every lock through Redis.
//   - floor: two bare scripts on the layout of rlock, without checks, on a
//     client with the same options, with names made beforehand. Nobody can
//     lock and unlock in that layout for less.
//   - fair: fair with its defaults; "fair, no hand-over" with
//     WithLocalHandover(0), so that every hand-over is a call to Redis, and each
//     waiter enters the queue by a call of its own.
//   - ring: a token that goes round as many processes and goroutines, by one
//     script call and one message for each step, without any lock. Nobody can
//     hand over in a strict order between processes through Redis for less.
//   - multilock: multilock on five masters with its defaults, after Bootstrap.
//   - redsync: on the same five masters, by go-redis with a pool of 64
//     connections to each, with the lease of holdfast; else with its defaults. It
//     renews nothing.
//   - rueidislock: on one Redis as its README advises (KeyMajority 1,
//     NoLoopTracking), with the lease and renewal interval of holdfast, and with
//     more time for a call than the 20 ms of its default (TryNextAfter), after
//     which a waiter may stay asleep on a busy machine. Where it is stuck all the
//     same, its round is left out and a note says so.
//
// # Terms
//
// A cycle is one lock and unlock; its section is what runs in between. Commands
// are those that clients send, told by INFO commandstats, where the commands
// within scripts are left out and so are the PINGs by which rueidis watches idle
// connections. The workloads' files define what is ideal in each.
package main

// Command bench measures holdfast beside other libraries and beside the floor,
// on servers that it starts itself, and writes a table of ratios with their
// targets, the libraries side by side, the raw figures and plots, into results where
// it measures everything and into results-quick otherwise; after a whole run and
// -redraw also a short table between two marks in ../README.md.
//
//	go run .                               # everything, about an hour
//	go run . -quick                        # Go libraries on Redis, the main three workloads
//	go run . -run 'uncontended/64|hot'     # some workloads
//	go run . -time 200ms -rounds 1 -out /tmp/try    # does it run?
//	go run . -resume                       # what a run that was interrupted has not measured
//	go run . -resume -again -run quorum/   # some workloads anew, at this commit, in that run
//	go run . -redraw                       # tables and plots anew from results/raw.json
//	go test -bench .                       # the same cycles as Go benchmarks
//
// etcd, ZooKeeper and Redisson are left out, with a line that says so, where they
// are not installed: ../hack/install-rivals.sh installs them. How each rival is set,
// and why, is in RIVALS.md.
//
// # How it measures
//
// A workload has subjects: libraries, or one library with different settings.
// Each round measures every subject once, one after the other, and each round
// begins with another one. A ratio is formed from figures of the same round; the table
// shows the median of the rounds and the smallest and largest. Every workload has a redis-server of its own,
// which is emptied before each subject; those of a quorum have five more, new for
// each subject. etcd and ZooKeeper are started once, and anew after a failure. Each
// subject works in processes of its own, of Go or Java; one that is alone warms up
// first, several work together for a while before what is measured: they meet, and
// subscribe, only then. Only the clients of a quorum, and the queues of growing length,
// live in this program itself, one after the other. Machines differ, and ratios within one run
// differ less: compare those, on a machine that does nothing else. What the host of a
// virtual machine disturbs, by taking more than 3 % of the processors' time for others,
// is measured again, twice at most, and the tables tell what is left of it (on Linux).
//
// Each section on the one key is counted in and out, by all processes in one number
// that they share (on Linux; elsewhere by each in its own): two inside at a time are
// exclusion that is broken.
//
// What fails is left out of its round, with a note, and ends nothing. If it was one
// of ours, or a server that did not start, the program exits with status 1 at the end.
//
// # Subjects
//
//   - holdfast: rlock with its defaults.
//   - no hand-over: rlock with WithLocalHandover(0), every lock through Redis.
//   - floor: two bare scripts on the layout of rlock, without checks, on a
//     client with the same options, with names made beforehand. Nobody can
//     lock and unlock in that layout for less, by a call for each.
//   - floor of SET: the same for a lock that is a string and tells nobody of its
//     release, SET NX PX and a script that compares and deletes.
//   - fair: fair with its defaults; "fair, no hand-over" with
//     WithLocalHandover(0), so that every hand-over is a call to Redis, and each
//     waiter enters the queue by a call of its own.
//   - ring: a token that goes round as many processes and goroutines, by one
//     script call and one message for each step, without any lock. Nobody can
//     hand over in a strict order between processes through Redis for less.
//   - ring with a queue: the same with what a fair lock in Redisson's layout has to
//     do to its keys at the least, in two calls for each step: who wants a lock again
//     has to say so, unlike who is in the ring for ever.
//   - multilock: multilock on five masters with its defaults, after Bootstrap with NothingHeld;
//     redsync on the same five masters.
//   - the rivals of RIVALS.md. Where one is stuck or breaks exclusion, its round
//     is left out and a note says so.
//
// # Terms
//
// A cycle is one lock and unlock; its section is what runs in between. Commands
// are those that clients send, told by INFO commandstats, where the commands
// within scripts are left out and so are the PINGs by which rueidis watches idle
// connections. Latencies are from asking for the lock to having it, those that
// still wait at the end included; the load of all workloads but the flash sale is
// closed, that is, who waits asks for nothing else meanwhile, so that a library
// which serves a few and lets the others sleep shows few long waits: Jain's index
// tells. The workloads' files define what is ideal in each.
package main

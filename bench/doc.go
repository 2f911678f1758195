// Command bench measures holdfast beside other libraries and beside the floor, on servers
// that it starts itself. Package report writes the table, the pictures and the README's rows.
// What is measured, how, and what came of it is in ../docs/benchmarks.md.
//
//	go run .                               # everything, about an hour
//	go run . -quick                        # Go libraries on Redis, the main three workloads
//	go run . -run 'uncontended/64|hot'     # some workloads, into results-quick
//	go run . -run quorum/ -out results     # some workloads anew, beside the others that are kept
//	go run . -redraw                       # table, pictures and README anew from results/raw.json
//
// # How it works
//
// A workload (workloads.go) has subjects: libraries (library.go, and one file for each), or one
// library with different settings. Each round measures every subject once, and each begins with
// another one (workload.go). A subject's work is done by a fleet of processes (fleet.go); each is
// told a task and answers with a result (worker.go here, agent.go there, java/…/Agent.java for
// Redisson). What the process does is its role: load.go, waiting.go, held.go, sale.go, recovery.go.
// Only far.go works in this process.
//
// Each section on the one key is counted in and out, by all processes in one number that they
// share (on Linux; elsewhere by each in its own): two inside at a time are exclusion that is
// broken. What the host of a virtual machine disturbs is measured again, twice at most.
//
// What fails is left out of its round, with a note, and ends nothing. If it was one of ours, or a
// process that did not start, the program exits with status 1 at the end.
package main

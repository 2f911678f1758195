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
// agent.go on the other, java/…/Agent.java for Redisson). On a Redis Cluster or a Sentinel set,
// each measurement has servers of its own, which package redistest starts (deployment.go). What
// the process does is its role: load.go, waiting.go, held.go, sale.go, recovery.go. Only far.go
// works in this process.
//
// Where all want one key, each section counts itself in and out, in one number for all
// processes. Two inside at a time mean that exclusion is broken; or a writer beside others, or
// more than there are permits. What the host of a virtual machine disturbs is measured again,
// twice at most.
//
// A subject that fails is left out of its round, with a note, and the run goes on. If it was one
// of ours, or a process did not start, the program exits with status 1 at the end.
package main

// Package interop proves that a Go process and a Java process share one lock: its tests drive
// programs in both languages, the Java one with the real Redisson, on one Redis and on a Redis
// Cluster. It has only tests.
//
// Such a program is an agent. It reads commands as lines of JSON on its standard input, and
// answers each with a line on its standard output. The Go agent is the test binary, started
// once more; the Java agent is the Maven project in the folder java. As both take the same
// commands, nearly every case is written once and runs both ways: Go holds and Java waits,
// Java holds and Go waits.
//
// To Redisson an owner is a client and a thread, so each command names the thread that
// carries it out. In the Go agent a thread is a goroutine that remembers its leases and
// passes the context that is bound to them.
//
// `make test-interop` runs the tests, as does INTEROP=1 in the environment; otherwise
// they are skipped. They build the Java agent first.
package interop

// Package interop proves that a Go process and a Java process share one lock: its
// tests drive programs in both languages, the Java one with the real Redisson, on
// one Redis. It holds nothing but tests.
//
// An agent is such a program. It is told what to do in lines of JSON on its
// standard input, and answers each with one on its standard output. The Go agent
// is the test binary, started once more; the Java agent is the Maven project in
// the folder java. As both take the same commands, nearly every case is written
// once and run both ways: Go holds and Java waits, Java holds and Go waits.
//
// To Redisson an owner is a client and a thread, so each command names the thread
// that carries it out. In the Go agent a thread is a goroutine that remembers its
// leases and passes the context that is bound to them.
//
// The tests run if the Java agent has been built, as `make test-interop` does, or
// with INTEROP=1 in the environment, which builds it. Else, and in short tests, they
// are skipped.
package interop

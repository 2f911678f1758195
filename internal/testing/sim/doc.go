// Package sim is a Redis world in virtual time: servers, and a network between them and the
// lockers of a test, all inside one bubble of testing/synctest. The locks, their client and
// their scripts are the real ones; what the world does to them takes no machine time, and a
// busy machine changes nothing.
//
//	network.go   connects by address, in memory
//	server.go    a server, and what may happen to it
//	commands.go  how it answers where miniredis answers unlike Redis, or not at all
//	script.go    how it runs scripts, which may be refused
//	world.go     servers, processes and the links between them
//	schedule.go  faults of a world, by a seed
//
// A link is a [redistest.Proxy] on a [Network]: the same faults as on real servers, by the same
// methods. The server is miniredis, not Redis: rights, memory, persistence, replicas and Redis
// Cluster must be tried on real servers, as must sockets and killed processes.
//
// # What a seed repeats
//
// Exactly: the schedule of faults, and any other choice that a test takes from [Random], such as
// which calls a caller makes in which order; the times that the messages of a link take, in
// their order. Not: what the locks draw from the global source of math/rand/v2 (pauses between
// attempts), uuids, and which of several goroutines runs first at one instant. So two runs of a
// seed have the same faults at the same instants, but calls may meet them a little differently.
// Run a seed that has failed several times.
//
// For tests only.
package sim

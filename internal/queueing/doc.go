// Package queueing is the discipline of lock kinds that serve first come, first served. Each
// waiter stands in Redis' queue with an owner of its own, and Redis decides whose turn it is.
// The loop of a queue lives as long as its waiters and a little longer.
// The doc page of package fair describes the protocol.
//
// # The files
//
//	backend.go    what a lock kind has to do in Redis
//	queueing.go   what the engine calls: waiters join and leave
//	loop.go       the loop
//	enter.go      calls that enter and leave
//	grant.go      grants: trusted, confirmed, or given back
//	heartbeat.go  heartbeats keep places and find what was lost
//	linger.go     waiters that enter together
//	run.go        handover in the order of Redis' queue
//	queue.go      tickets, and the state of a queue
//	place.go      the places of waiters
//	sign.go       owners that others cannot forge
package queueing

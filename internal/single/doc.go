// Package single has the engine's backends on one Redis, which combine the scripts and the
// subscription connection of one server: [Racing] for package rlock, [ReadWrite] for
// package rwlock, [Permits] for package semaphore, [Queued] for package fair. Calls that are made at the
// same time go out as a batch (batch.go).
package single

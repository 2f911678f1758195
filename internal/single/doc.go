// Package single has the engine's backends on one Redis, which combine the scripts and the
// subscription connection of one server: [RLock], [RWLock], [Semaphore] and [Fair], each for the
// package of that name. Calls that are made at the same time go out as a batch (batch.go).
package single

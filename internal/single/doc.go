// Package single has the engine's backends on one Redis: the scripts and the subscription
// connection of one server, put together. [Racing] is that of package rlock, [Queued] that
// of package fair. Calls that are made at once go out as one (batch.go).
package single

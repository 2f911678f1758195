//go:build !planted

// Package planted plants known mistakes, one at a time, so that the campaigns of internal/testing/sim and
// the controls of the chaos campaign can show that they find them. Only tests built with the
// tag "planted" have them: elsewhere these are constants, and the compiler removes the code
// behind them.
package planted

const (
	TrustFromReply   = false // a lease counts from the reply, and not from the start of the call
	TrustFromGrant   = false // a lease counts from the message of its grant
	OneRenews        = false // one node decides a renewal
	SmallQuorum      = false // a minority makes a quorum
	NoQuarantine     = false // a node votes although it has just forgotten
	NoTombstones     = false // an owner that is given up leaves no tombstone
	NoUndoOfAcquires = false // an acquire of unknown outcome is not undone
	NoUndoOfLosses   = false // a hold that is lost by silence is not undone
	NoLeave          = false // a waiter that gives up leaves its owner in the queue
	NoGiveUp         = false // a failed round stays on the nodes that said yes
	DeafReconnect    = false // a connection that was lost, and a new one, are no reason to try again
	DeafHeartbeat    = false // a heartbeat does not find grants whose message was lost
	ReviveLost       = false // a renewal takes the key again that it finds free
	ReleaseAny       = false // a release ends the hold of any owner
	RepeatIsLoss     = false // a release that was repeated and finds nothing is a loss
	NilAfterLoss     = false // Unlock returns nil after a loss
	LateDone         = false // the end of a lease is told a little late
	FenceTwice       = false // a handover in memory gives the same fence again
	OneMore          = false // a key has one permit more than agreed
	LastFirst        = false // a waiter enters at the front of the queue
	EndShared        = false // a reader that leaves ends the hold that it shares with others
	WriteBeside      = false // a writer takes the lock beside readers
	NoWishes         = false // readers do not let writers that wait go first
	HandoverAny      = false // a handover in memory passes on a fixed or capped lease to a waiter that asked for another
)

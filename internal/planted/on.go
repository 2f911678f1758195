//go:build planted

package planted

import "os"

// Env names the environment variable that chooses a mistake, for a process and its
// children.
const Env = "HOLDFAST_MISTAKE"

var (
	TrustFromReply   = os.Getenv(Env) == "trust from the reply"
	TrustFromGrant   = os.Getenv(Env) == "trust from the grant"
	OneRenews        = os.Getenv(Env) == "one node renews"
	SmallQuorum      = os.Getenv(Env) == "two of five"
	NoQuarantine     = os.Getenv(Env) == "no quarantine"
	NoTombstones     = os.Getenv(Env) == "no tombstones"
	NoUndoOfAcquires = os.Getenv(Env) == "no undo of acquires"
	NoUndoOfLosses   = os.Getenv(Env) == "no undo of losses"
	NoLeave          = os.Getenv(Env) == "no leave"
	NoGiveUp         = os.Getenv(Env) == "no giving up"
	DeafReconnect    = os.Getenv(Env) == "deaf reconnect"
	DeafHeartbeat    = os.Getenv(Env) == "deaf heartbeat"
	ReviveLost       = os.Getenv(Env) == "revive the lost"
	ReleaseAny       = os.Getenv(Env) == "release any"
	RepeatIsLoss     = os.Getenv(Env) == "repeat is loss"
	NilAfterLoss     = os.Getenv(Env) == "nil after loss"
	LateDone         = os.Getenv(Env) == "late done"
	FenceTwice       = os.Getenv(Env) == "fence twice"
	OneMore          = os.Getenv(Env) == "one more"
	LastFirst        = os.Getenv(Env) == "last first"
	EndShared        = os.Getenv(Env) == "end the shared"
	WriteBeside      = os.Getenv(Env) == "write beside readers"
	NoWishes         = os.Getenv(Env) == "no wishes"
	HandoverAny      = os.Getenv(Env) == "hand over any"
)

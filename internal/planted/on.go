//go:build planted

package planted

import "os"

// Env names the environment variable that chooses one of the mistakes of the chaos run, for a
// process and its children.
const Env = "HOLDFAST_MISTAKE"

var (
	TrustFromReply = os.Getenv(Env) == "trust from the reply"
	OneRenews      = os.Getenv(Env) == "one node renews"
	SmallQuorum    = os.Getenv(Env) == "two of five"
	NoTombstones   = os.Getenv(Env) == "no tombstones"
)

// The others are for campaigns, which plant them in their own process.
var (
	TrustFromGrant, NoQuarantine, NoUndoOfAcquires, NoUndoOfLosses, NoLeave, NoGiveUp, DeafReconnect, DeafHeartbeat,
	ReviveLost, ReleaseAny, RepeatIsLoss, NilAfterLoss, LateDone, FenceTwice, OneMore, LastFirst, EndShared,
	WriteBeside, NoWishes, HandoverAny bool
)

//go:build seeded

package seed

import "os"

// Env names the environment variable that chooses a mistake, for a process and its
// children.
const Env = "HOLDFAST_SEED"

var (
	TrustFromReply = os.Getenv(Env) == "trust from the reply"
	OneRenews      = os.Getenv(Env) == "one node renews"
	SmallQuorum    = os.Getenv(Env) == "two of five"
	NoTombstones   = os.Getenv(Env) == "no tombstones"
)

//go:build seeded

package campaign_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/seed"
)

// mistakes are what campaigns have to find, with the promise that is broken, and the number of
// seeds within which one does.
var mistakes = []struct {
	name   string
	kind   string
	plant  *bool
	breaks string
	within uint64
}{
	{"trust from the reply", "rlock", &seed.TrustFromReply, "OVERLAP", 60},
	{"trust from the reply", "fair", &seed.TrustFromReply, "OVERLAP", 60},
	{"trust from the grant", "fair", &seed.TrustFromGrant, "OVERLAP", 60},
	{"one node renews", "multilock", &seed.OneRenews, "OVERLAP", 6},
	{"two of five", "multilock", &seed.SmallQuorum, "OVERLAP", 6},
	{"no quarantine", "multilock", &seed.NoQuarantine, "OVERLAP", 30},
	{"no tombstones", "rlock", &seed.NoTombstones, "ORPHAN", 60},
	{"no tombstones", "multilock", &seed.NoTombstones, "ORPHAN", 60},
	{"no clean-up", "rlock", &seed.NoCleanUp, "ORPHAN", 60},
	{"no undo", "rlock", &seed.NoUndo, "ORPHAN", 60},
	{"no leave", "fair", &seed.NoLeave, "LEFT", 60},
	{"no giving up", "multilock", &seed.NoGiveUp, "ORPHAN", 60},
	{"deaf reconnect", "rlock", &seed.DeafReconnect, "FREE", 60},
	{"deaf heartbeat", "fair", &seed.DeafHeartbeat, "ORPHAN", 60},
	{"revive the lost", "rlock", &seed.ReviveLost, "ORPHAN", 60},
	{"release any", "rlock", &seed.ReleaseAny, "OVERLAP", 60},
	{"repeat is loss", "rlock", &seed.RepeatIsLoss, "UNLOCK", 60},
	{"nil after loss", "rlock", &seed.NilAfterLoss, "UNLOCK", 60},
	{"late done", "rlock", &seed.LateDone, "LATE", 60},
	{"fence twice", "rlock", &seed.FenceTwice, "FENCE", 60},
	{"hand over any", "rlock", &seed.HandOverAny, "TERMS", 60},
}

// TestPower shows that the campaigns find mistakes.
func TestPower(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name+" in "+m.kind, func(t *testing.T) {
			*m.plant = true
			defer func() { *m.plant = false }()
			for s := *first; s < *first+m.within; s++ {
				c := newCampaign(m.kind, s, 10*time.Minute)
				c.wanted = m.breaks
				synctest.Test(t, c.run)
				if c.found.Load() {
					t.Logf("found by seed %d\n%s", s, c.report())
					return
				}
			}
			require.Fail(t, "not found")
		})
	}
}

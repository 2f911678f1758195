//go:build seeded

package campaign_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// mistakes are what campaigns have to find, with the promise that is broken, and the number of
// seeds within which one does. Only some seeds can find it: those with the guard, or with few
// kinds of faults, one of which brings it to light.
var mistakes = []struct {
	name   string
	kind   string
	plant  *bool
	breaks string
	within uint64
	where  func(*campaign) bool // nil: all seeds
}{
	{"trust from the reply", "rlock", &seed.TrustFromReply, "OVERLAP", 60, nil},
	{"trust from the reply", "fair", &seed.TrustFromReply, "OVERLAP", 60, nil},
	{"trust from the grant", "fair", &seed.TrustFromGrant, "OVERLAP", 200, grantsFade},
	{"one node renews", "multilock", &seed.OneRenews, "OVERLAP", 9, nil},
	{"two of five", "multilock", &seed.SmallQuorum, "OVERLAP", 6, nil},
	{"no quarantine", "multilock", &seed.NoQuarantine, "OVERLAP", 60, guarded},
	{"no tombstones", "rlock", &seed.NoTombstones, "ORPHAN", 200, straggles},
	{"no tombstones", "multilock", &seed.NoTombstones, "ORPHAN", 200, straggles},
	{"no clean-up", "rlock", &seed.NoCleanUp, "ORPHAN", 10, nil},
	{"no undo", "rlock", &seed.NoUndo, "ORPHAN", 30, nil},
	{"no leave", "fair", &seed.NoLeave, "LEFT", 5, nil},
	{"no giving up", "multilock", &seed.NoGiveUp, "ORPHAN", 5, nil},
	{"deaf reconnect", "rlock", &seed.DeafReconnect, "FREE", 5, nil},
	{"deaf heartbeat", "fair", &seed.DeafHeartbeat, "ORPHAN", 5, nil},
	{"revive the lost", "rlock", &seed.ReviveLost, "ORPHAN", 60, nil},
	{"release any", "rlock", &seed.ReleaseAny, "OVERLAP", 5, nil},
	{"repeat is loss", "rlock", &seed.RepeatIsLoss, "UNLOCK", 10, nil},
	{"nil after loss", "rlock", &seed.NilAfterLoss, "UNLOCK", 5, nil},
	{"late done", "rlock", &seed.LateDone, "LATE", 5, nil},
	{"fence twice", "rlock", &seed.FenceTwice, "FENCE", 5, nil},
	{"hand over any", "rlock", &seed.HandOverAny, "TERMS", 10, nil},
}

func guarded(c *campaign) bool { return c.guard }
func straggles(c *campaign) bool {
	return len(c.faults) <= 4 && slices.Contains(c.faults, sim.Straggle)
}
func grantsFade(c *campaign) bool {
	return len(c.faults) == 2 && slices.Contains(c.faults, sim.Fade) && !c.confirmed
}

// TestPower shows that the campaigns find mistakes.
func TestPower(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name+" in "+m.kind, func(t *testing.T) {
			*m.plant = true
			defer func() { *m.plant = false }()
			for s := *first; s < *first+m.within; s++ {
				c := newCampaign(m.kind, s, 10*time.Minute)
				if m.where != nil && !m.where(c) {
					continue
				}
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

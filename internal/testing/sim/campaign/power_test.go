//go:build planted

package campaign_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/planted"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
)

// mistakes are what campaigns have to find, with the promise that is broken, and the number of
// seeds within which one does; or 0, where a cut has to, at one of its points.
var mistakes = []struct {
	name   string
	kind   string
	breaks string
	within uint64
	cut    cut
}{
	{"trust from the reply", "rlock", "OVERLAP", 60, cut{}},
	{"trust from the reply", "fair", "OVERLAP", 100, cut{}},
	{"trust from the grant", "fair", "OVERLAP", 0, cut{what: sim.Fade, long: cutLease * 7 / 5}},
	{"one node renews", "multilock", "OVERLAP", 15, cut{}},
	{"two of five", "multilock", "OVERLAP", 6, cut{}},
	{"no quarantine", "multilock", "OVERLAP", 60, cut{}},
	{"no tombstones", "rlock", "ORPHAN", 0, cut{what: sim.Straggle, long: cutLease * 5 / 6}},
	{"no undo of acquires", "rlock", "ORPHAN", 30, cut{}},
	{"no undo of losses", "rlock", "ORPHAN", 30, cut{}},
	{"no leave", "fair", "LEFT", 10, cut{}},
	{"no giving up", "multilock", "ORPHAN", 5, cut{}},
	{"last first", "fair", "ORDER", 5, cut{}},
	{"deaf reconnect", "rlock", "FREE", 40, cut{}},
	{"deaf heartbeat", "fair", "ORPHAN", 5, cut{}},
	{"revive the lost", "rlock", "ORPHAN", 0, cut{what: sim.Straggle, long: cutLease * 5 / 6}},
	{"release any", "rlock", "OVERLAP", 5, cut{}},
	{"repeat is loss", "rlock", "UNLOCK", 10, cut{}},
	{"nil after loss", "rlock", "UNLOCK", 5, cut{}},
	{"late done", "rlock", "LATE", 5, cut{}},
	{"fence twice", "rlock", "FENCE", 5, cut{}},
	{"one more", "semaphore", "OVERLAP", 5, cut{}},
	{"trust from the reply", "semaphore", "OVERLAP", 60, cut{}},
	{"no tombstones", "semaphore", "ORPHAN", 0, cut{what: sim.Straggle, long: cutLease * 5 / 6}},
	{"revive the lost", "semaphore", "ORPHAN", 0, cut{what: sim.Straggle, long: cutLease * 5 / 6}},
	{"end the shared", "rwlock", "OVERLAP", 5, cut{}},
	{"write beside readers", "rwlock", "OVERLAP", 5, cut{}},
	{"write beside readers", "rwlock", "HISTORY", 5, cut{}},
	{"no wishes", "rwlock", "STARVES", 5, cut{}},
	{"no tombstones", "rwlock", "ORPHAN", 0, cut{what: sim.Straggle, long: cutLease * 5 / 6}},
	{"hand over any", "rlock", "TERMS", 30, cut{}},
}

// rounds is how often the seeds, or the cuts, are tried: calls meet the faults a little differently each time.
const rounds = 5

// TestPower shows that the campaigns find mistakes. With -short, it plants those that six seeds find.
func TestPower(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name+" in "+m.kind, func(t *testing.T) {
			if testing.Short() && (m.within == 0 || m.within > 6) {
				t.Skip("make sim runs it")
			}
			planted.Mistake = m.name
			defer func() { planted.Mistake = "" }()
			if m.within == 0 {
				findByCut(t, m.kind, m.breaks, m.cut)
				return
			}
			for try := range rounds * m.within {
				c := newCampaign(m.kind, *first+try%m.within, 10*time.Minute)
				c.wanted = m.breaks
				synctest.Test(t, c.run)
				if c.judge.counts[m.breaks] > 0 {
					t.Logf("found by seed %d\n%s", c.seed, c.report())
					return
				}
			}
			require.Fail(t, "not found")
		})
	}
}

func findByCut(t *testing.T, kind, breaks string, cut cut) {
	_, points, _ := play(t, kind, 1, cut)
	for range rounds {
		for cut.k = points; cut.k > 0; cut.k-- { // what finds most comes last in the scenario
			if c, _, _ := play(t, kind, 1, cut); c.judge.counts[breaks] > 0 {
				t.Logf("found at %v of %d", cut.point, points)
				return
			}
		}
	}
	require.Fail(t, "not found")
}

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
// seeds within which one does. Not among them yet: "no tombstones", which costs progress for a
// lease, as long as the bound of that is a lease as well; and trust in fair.
var mistakes = []struct {
	name   string
	kind   string
	plant  *bool
	breaks string
	within uint64
}{
	{"trust from the reply", "rlock", &seed.TrustFromReply, "OVERLAP", 60},
	{"one node renews", "multilock", &seed.OneRenews, "OVERLAP", 6},
	{"two of five", "multilock", &seed.SmallQuorum, "OVERLAP", 3},
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
					t.Log(c.report())
					return
				}
			}
			require.Fail(t, "not found")
		})
	}
}

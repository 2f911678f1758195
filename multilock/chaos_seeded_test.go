//go:build seeded

package multilock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/locktest/chaos"
	"github.com/holdfast-go/holdfast/internal/seed"
)

// Each of these must fail within the time of a campaign.
func TestG1_ChaosControls(t *testing.T) {
	length := max(chaosTime(t), 80*time.Second) // a run ends when it has found something
	for name, how := range map[string]chaos.Campaign{
		"guard off":            {Unguarded: true},
		"Bootstrap":            {NothingHeld: true},
		"one clock":            {Clocks: true},
		"trust from the reply": {},
		"one node renews":      {},
		"two of five":          {},
		"no tombstones":        {Orphans: true},
	} {
		t.Run(name, func(t *testing.T) {
			if !how.Unguarded {
				needGuard(t)
			}
			t.Setenv(seed.Env, name)
			chaos.RunControl(t, how, length)
		})
	}
}

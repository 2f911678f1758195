//go:build planted

package multilock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/locktest/chaos"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/testing/planted"
)

// Each of these must fail.
func TestG1_ChaosControls(t *testing.T) {
	length := exclusion.AtMost(chaosTime(t)) // a run ends when it has found something
	for name, how := range map[string]chaos.Campaign{
		"guard off":            {Unguarded: true},
		"NothingHeld":          {NothingHeld: true},
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
			t.Setenv(planted.Env, name)
			chaos.RunControl(t, how, length)
		})
	}
}

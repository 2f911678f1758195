package fair_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestG1_ExclusionUnderFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("a campaign of 20 s")
	}
	locktest.RunExclusion(t, door)
}

func TestG1_ExclusionCheckFindsABrokenLock(t *testing.T) { locktest.RunExclusionControl(t, door) }

func TestG1_Linearizable(t *testing.T) { locktest.RunLinearizability(t, door) }

func TestG1_LinearizabilityCheckFindsSeededBugs(t *testing.T) {
	locktest.RunLinearizabilityControl(t, door)
}

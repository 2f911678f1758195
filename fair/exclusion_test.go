package fair_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestG1_ExclusionUnderFaults(t *testing.T) { locktest.RunExclusion(t, kind) }

func TestG1_ExclusionCheckFindsABrokenLock(t *testing.T) { locktest.RunExclusionControl(t, kind) }

func TestG1_Linearizable(t *testing.T) { locktest.RunLinearizability(t, kind) }

func TestG1_LinearizabilityCheckFindsSeededBugs(t *testing.T) {
	locktest.RunLinearizabilityControl(t, kind)
}

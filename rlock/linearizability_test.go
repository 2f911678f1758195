package rlock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestG1_Linearizable(t *testing.T) { locktest.RunLinearizability(t, kind) }

func TestG1_LinearizabilityCheckFindsSeededBugs(t *testing.T) {
	locktest.RunLinearizabilityControl(t, kind)
}

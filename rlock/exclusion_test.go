package rlock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestG1_ExclusionUnderFaults(t *testing.T) { locktest.RunExclusion(t, kind) }

func TestG1_ExclusionCheckFindsABrokenLock(t *testing.T) { locktest.RunExclusionControl(t, kind) }

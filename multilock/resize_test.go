package multilock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestG1_NodesAreAddedAndRemovedOneByOne(t *testing.T) { locktest.RunResize(t) }

func TestG1_ControlTwoNodesAtOnce(t *testing.T) { locktest.RunResizeControl(t) }

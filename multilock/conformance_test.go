package multilock_test

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestConformance(t *testing.T) { locktest.Run(t, door) }

func TestConformance3(t *testing.T) {
	onSeveral(t)
	locktest.Run(t, doorOf(3))
}

func TestConformance5(t *testing.T) {
	onSeveral(t)
	locktest.Run(t, doorOf(5))
}

// onSeveral leaves out what some 300 redis-servers at once make too slow for the
// time-outs of nodes on a busy machine.
func onSeveral(t *testing.T) {
	if os.Getenv("QUORUM") != "all" {
		t.Skip("make quorum runs the suites on several nodes")
	}
}

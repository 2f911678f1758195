package multilock_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestConformance(t *testing.T) { locktest.Run(t, kind) }

func TestConformance3(t *testing.T) { locktest.Run(t, onSeveral(t, 3)) }

func TestConformance5(t *testing.T) { locktest.Run(t, onSeveral(t, 5)) }

// onSeveral is the lock kind on so many nodes, if the environment variable QUORUM names
// their number: some 300 redis-servers are more than a test beside others should
// start, and what the nodes have to answer in is short for the race detector.
func onSeveral(t *testing.T, nodes int) locktest.Kind {
	if !slices.Contains(strings.Split(os.Getenv("QUORUM"), ","), strconv.Itoa(nodes)) {
		t.Skip("make test-all runs the suites on several nodes, with QUORUM=3,5")
	}
	return kindOf(nodes)
}

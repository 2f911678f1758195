package model

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Walk is a random walk through a model and, beside it, through what it is a model of.
type Walk struct {
	*rand.Rand
	met map[string]int // of all walks
	log []string
}

// Walks takes n random walks, or a quarter of that in short tests, which are too few to
// meet with all that walks must meet with.
func Walks(t *testing.T, n int, mustMeet []string, walk func(*Walk)) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	if testing.Short() {
		n /= 4
	}
	met := map[string]int{}
	for i := range n {
		walk(&Walk{Rand: rand.New(rand.NewPCG(seed, uint64(i))), met: met})
	}
	t.Logf("%d walks: %v", n, met)
	if !testing.Short() {
		for _, what := range mustMeet {
			require.NotZero(t, met[what], what)
		}
	}
}

// Note notes a step.
func (w *Walk) Note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// Meet notes what the walk may have met with.
func (w *Walk) Meet(met bool, what string) {
	if met {
		w.met[what]++
	}
}

// String tells the steps.
func (w *Walk) String() string { return fmt.Sprintf("after %q", w.log) }

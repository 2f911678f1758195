package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStolen(t *testing.T) {
	before := processorsOf("cpu  100 0 50 800 10 0 20 20 5 0")
	require.Equal(t, processors{20, 1000}, before)
	after := processorsOf("cpu  150 0 60 815 10 0 20 45 5 0")
	require.InDelta(t, 0.25, after.stolenSince(before), 1e-9)
	require.Zero(t, before.stolenSince(before))
	for _, unknown := range []string{"", "unknown", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 x"} {
		require.Zero(t, processorsOf(unknown), unknown)
	}
}

// What the host disturbed is measured again, not for ever, and the report says how much
// is left of it.
func TestDisturbedIsMeasuredAgain(t *testing.T) {
	needServer(t)
	defer func(f func() processors) { spentSoFar = f }(spentSoFar)
	for name, c := range map[string]struct {
		stolen []float64 // of each try, in a hundred ticks
		tries  int
		told   float64
	}{
		"undisturbed": {[]float64{1}, 1, 0.01},
		"once":        {[]float64{20, 2}, 2, 0.02},
		"always":      {[]float64{20, 30, 10}, 3, 0.1},
	} {
		var now processors
		tries := 0
		spentSoFar = func() processors { return now }
		s := subject{name: "a", run: func(*server, time.Duration) (sample, error) {
			now.stolen += c.stolen[tries]
			now.all += 100
			tries++
			return sample{"try": float64(tries)}, nil
		}}
		m, err := workload{name: name, subjects: []subject{s}}.measure(1, time.Millisecond, newProgress(io.Discard, nil, 1))
		require.NoError(t, err)
		require.Equal(t, c.tries, tries, name)
		require.Equal(t, sample{"try": float64(c.tries)}, m.Rounds[0]["a"], "the last counts")
		require.InDelta(t, c.told, m.Stolen, 1e-9, name)
	}
}

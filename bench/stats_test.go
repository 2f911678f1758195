package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	require.Equal(t, 3.0, median([]float64{5, 1, 3}))
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	require.Equal(t, 7.0, median([]float64{7}))
	require.True(t, math.IsNaN(median(nil)))

	values := []float64{3, 1, 2}
	median(values)
	require.Equal(t, []float64{3, 1, 2}, values, "the order of the rounds is kept")
}

func TestQuantile(t *testing.T) {
	var waits []time.Duration
	for i := 100; i >= 1; i-- {
		waits = append(waits, time.Duration(i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.01: 1, 0.5: 50, 0.99: 99, 0.991: 100, 1: 100} {
		require.Equal(t, want, quantile(waits, q), q)
	}
	require.Equal(t, 8, quantile([]int{8}, 0.99))
}

func TestJain(t *testing.T) {
	require.Equal(t, 1.0, jain([]float64{5, 5, 5, 5}))
	require.Equal(t, 0.25, jain([]float64{0, 9, 0, 0}))
	require.InDelta(t, 0.9, jain([]float64{1, 2}), 1e-9)
	require.True(t, math.IsNaN(jain([]float64{0, 0})))
}

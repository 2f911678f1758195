package main

import (
	"cmp"
	"math"
	"slices"
)

// median returns the middle of values, or the mean of the middle two.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// quantile returns the smallest of values that at least the share q of them
// does not exceed. It sorts values; they must not be empty.
func quantile[T cmp.Ordered](values []T, q float64) T {
	slices.Sort(values)
	return values[max(int(math.Ceil(q*float64(len(values))))-1, 0)]
}

// jain returns Jain's index of fairness, (Σx)² / n·Σx²: 1 if all shares are
// equal, 1/n if one has all. (Jain, Chiu, Hawe, DEC TR-301, 1984.)
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(shares)) * squares)
}

//go:build !race

package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Without an observer, a lock and its Unlock allocate what they did before there were any.
func TestLockAllocates(t *testing.T) {
	require.LessOrEqual(t, testing.Benchmark(BenchmarkLockUnlock).AllocsPerOp(), int64(7))
}

//go:build !race

package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Without an observer, a lock and its Unlock allocate what they did before there were any.
func TestLockAllocates(t *testing.T) {
	require.LessOrEqual(t, testing.Benchmark(BenchmarkLockUnlock).AllocsPerOp(), int64(7))
}

func BenchmarkLockUnlock(b *testing.B) {
	l := userLocker(b, redistest.Start(b).Client(b))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		lease, err := l.Lock(ctx, "k")
		if err != nil {
			b.Fatal(err)
		}
		_ = lease.Unlock(ctx)
	}
}

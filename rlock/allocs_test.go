//go:build !race

package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Without an observer, a lock and its Unlock allocate what they did before there were any. A context that can end
// costs more: the call ends with it.
func TestLockAllocates(t *testing.T) {
	require.LessOrEqual(t, testing.Benchmark(BenchmarkLockUnlock).AllocsPerOp(), int64(7))
	require.LessOrEqual(t, testing.Benchmark(BenchmarkLockUnlockCancellable).AllocsPerOp(), int64(13))
}

func BenchmarkLockUnlock(b *testing.B) { lockAndUnlock(b, context.Background()) }

func BenchmarkLockUnlockCancellable(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lockAndUnlock(b, ctx)
}

func lockAndUnlock(b *testing.B, ctx context.Context) {
	l := userLocker(b, redistest.Start(b).Client(b))
	b.ReportAllocs()
	for b.Loop() {
		lease, err := l.Lock(ctx, "k")
		if err != nil {
			b.Fatal(err)
		}
		_ = lease.Unlock(ctx)
	}
}

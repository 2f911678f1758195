package rlock_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A TryLock that fails without Redis: callers that leave work to another make many of these.
func BenchmarkTryLockHeldByThisLocker(b *testing.B) {
	l := userLocker(b, redistest.Start(b).Client(b))
	locktest.Lock(b, l, context.Background(), "k")
	for b.Loop() {
		if _, err := l.TryLock(context.Background(), "k"); err == nil {
			b.Fatal("acquired")
		}
	}
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

func BenchmarkDo(b *testing.B) {
	l := userLocker(b, redistest.Start(b).Client(b))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Do(ctx, "k", func(context.Context) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

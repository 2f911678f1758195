package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// A TryLock that fails without Redis: callers that leave work to another make many of these.
func BenchmarkTryLockHeldByThisLocker(b *testing.B) {
	l, err := rlock.New(redistest.Start(b).Client(b))
	require.NoError(b, err)
	defer l.Close()
	lease, err := l.Lock(context.Background(), "k")
	require.NoError(b, err)
	defer func() { _ = lease.Unlock(context.Background()) }()
	for b.Loop() {
		if _, err := l.TryLock(context.Background(), "k"); err == nil {
			b.Fatal("acquired")
		}
	}
}

func BenchmarkLockUnlock(b *testing.B) {
	l, err := rlock.New(redistest.Start(b).Client(b))
	require.NoError(b, err)
	defer l.Close()
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
	l, err := rlock.New(redistest.Start(b).Client(b))
	require.NoError(b, err)
	defer l.Close()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Do(ctx, "k", func(context.Context) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestFaults(t *testing.T) { locktest.RunFaults(t, kind) }

// To the suite a lease of zero means the default.
func TestF8_LeaseOfZeroIsRefused(t *testing.T) {
	client := redistest.Start(t).Client(t)
	_, err := rlock.New(client, rlock.WithLease(0))
	require.ErrorContains(t, err, "WithLease")
	l, err := rlock.New(client)
	require.NoError(t, err)
	defer l.Close()
	_, err = l.TryLock(context.Background(), "k", rlock.FixedLease(0))
	require.ErrorContains(t, err, "FixedLease")
}

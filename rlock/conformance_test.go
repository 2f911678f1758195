package rlock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// The interface of all lock kinds, which the suite uses, does not have these options.
func TestF8_OptionsAreRefused(t *testing.T) {
	client := redistest.Start(t).Client(t)
	for want, opts := range map[string][]holdfast.Option{
		"option is nil":                   {nil},
		"WithLease: 0s":                   {holdfast.WithLease(0)},
		"WithLogger: logger is nil":       {holdfast.WithLogger((*slog.Logger)(nil))},
		"needs WithFencing":               {holdfast.WithFenceExpiry(time.Hour)},
		"WithFenceExpiry: -1ms":           {holdfast.WithFencing(), holdfast.WithFenceExpiry(-time.Millisecond)},
		"WithFenceExpiry: 1.5ms":          {holdfast.WithFencing(), holdfast.WithFenceExpiry(1500 * time.Microsecond)},
		"WithLocalHandover: 200ms is":     {holdfast.WithLease(100 * time.Millisecond), holdfast.WithLocalHandover(200 * time.Millisecond)},
		"WithReplicas: 2 replicas in 0s":  {holdfast.WithReplicas(2, 0)},
		"WithReplicas: 3s is longer":      {holdfast.WithReplicas(2, 3*time.Second)},
		"WithPrefix: with the prefix":     {holdfast.WithPrefix("redisson_lock_queue:")},
		"WithLabel: label has 1025 bytes": {holdfast.WithLabel(strings.Repeat("l", 1025))},
		"client is not of a Redis Clus":   {holdfast.WithShardedPubSub(true)},
	} {
		l, err := rlock.New(client, opts...)
		require.Nil(t, l)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
	locker := userLocker(t, client)
	for want, opt := range map[string]holdfast.LockOption{
		"option is nil":  nil,
		"FixedLease: 0s": holdfast.FixedLease(0),
		"MaxHold: 0s":    holdfast.MaxHold(0),
	} {
		l, err := locker.Lock(t.Context(), "k", opt)
		require.Nil(t, l)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
}

// On a Redis Cluster, all that belongs to a name has to share its slot.
func TestPrefix_OnACluster(t *testing.T) {
	k := kind
	k.Cluster, k.Prefix = true, "lock{"
	l := k.Open(t, k.Start(t).Client(t), locktest.Options{})
	_, err := l.TryLock(t.Context(), "a")
	require.ErrorContains(t, err, "hash tag")
	require.NoError(t, l.Do(t.Context(), "a}", func(context.Context) error { return nil }))
}

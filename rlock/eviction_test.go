package rlock_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// logged runs one lock on a server with the given policy and returns the log.
func logged(t *testing.T, policy string) string {
	s := redistest.Start(t, "--maxmemory-policy", policy)
	var log bytes.Buffer
	l, err := rlock.New(s.Client(t), rlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	require.NoError(t, l.Do(context.Background(), "k", func(context.Context) error { return nil }))
	require.NoError(t, l.Close()) // waits for the check of the policy
	return log.String()
}

func TestF31_EvictionIsWarnedAbout(t *testing.T) {
	require.Contains(t, logged(t, "volatile-ttl"), "policy=volatile-ttl")
	require.Contains(t, logged(t, "allkeys-lru"), "policy=allkeys-lru")
	require.Empty(t, logged(t, "noeviction"))
}

package rlock_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestF31_EvictionIsWarnedAbout(t *testing.T) {
	for policy, warned := range map[string]bool{"volatile-ttl": true, "allkeys-lru": true, "noeviction": false} {
		var log bytes.Buffer
		client := redistest.Start(t, "--maxmemory-policy", policy).Client(t)
		l := redistest.Must(rlock.New(client, holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
		require.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil }))
		require.NoError(t, l.Close()) // waits for the check of the policy
		require.Equal(t, warned, strings.Contains(log.String(), "policy="+policy), log.String())
		require.Equal(t, warned, log.Len() > 0, log.String())
	}
}

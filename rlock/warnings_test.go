package rlock_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// logged returns what a locker with that client logs, from New to Close.
func logged(t *testing.T, client rueidis.Client, opts ...holdfast.Option) string {
	var log bytes.Buffer
	l, err := rlock.New(client, append(opts, holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
	require.NoError(t, err)
	require.NoError(t, l.Do(context.Background(), "k", func(context.Context) error { return nil }))
	require.NoError(t, l.Close()) // waits for the check of the policy
	return log.String()
}

func TestF31_EvictionIsWarnedAbout(t *testing.T) {
	on := func(policy string) rueidis.Client { return redistest.Start(t, "--maxmemory-policy", policy).Client(t) }
	require.Contains(t, logged(t, on("volatile-ttl")), "policy=volatile-ttl")
	require.Contains(t, logged(t, on("allkeys-lru")), "policy=allkeys-lru")
	require.Empty(t, logged(t, on("noeviction")))
}

// The test fails with a version of rueidis whose fields have other names.
func TestF25_ClientOptionsAreWarnedAbout(t *testing.T) {
	server := redistest.Start(t)
	slow := server.Client(t, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = 3 * time.Second })
	require.Empty(t, logged(t, slow, holdfast.WithLease(9*time.Second)))
	require.Contains(t, logged(t, slow, holdfast.WithLease(8*time.Second)), "timeout=3s lease=8s")

	set, cluster := redistest.StartSentinel(t), redistest.StartCluster(t, 1, 0)
	for name, client := range map[string]func(testing.TB, ...func(*rueidis.ClientOption)) rueidis.Client{
		"option=Sentinel.TopologyRefreshInterval":    set.Client,
		"option=ClusterOption.ShardsRefreshInterval": cluster.Client,
	} {
		refresh := func(d time.Duration) rueidis.Client {
			return client(t, func(o *rueidis.ClientOption) {
				o.Sentinel.TopologyRefreshInterval, o.ClusterOption.ShardsRefreshInterval, o.ConnWriteTimeout = d, d, 3*time.Second
			})
		}
		require.Contains(t, logged(t, refresh(0)), name)
		refreshed := refresh(time.Second)
		require.Empty(t, logged(t, refreshed, holdfast.WithLease(9*time.Second)))
		require.Contains(t, logged(t, refreshed, holdfast.WithLease(8*time.Second)), "timeout=3s lease=8s")
	}
}

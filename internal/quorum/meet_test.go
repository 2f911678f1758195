package quorum

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The first round checks nodes that hang. Others that come meanwhile do not wait for longer
// than their contexts let them, nor does its own caller.
func TestF15_TheFirstCheckOfNodesHoldsUpNobodyWhoLeaves(t *testing.T) {
	var clients []rueidis.Client
	for range 3 {
		s := redistest.Start(t)
		clients = append(clients, s.Client(t, func(o *rueidis.ClientOption) { o.ConnWriteTimeout, o.Dialer.Timeout = time.Minute, time.Minute }))
		s.Pause()
		defer s.Resume()
	}
	q := New(clients, Config{NodeTimeout: time.Minute, Lease: lease, Longest: lease, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(q.Close)
	ended := make(chan error, 2)
	acquire := func(ctx context.Context, owner string) {
		_, err := q.Acquire(ctx, "k", owner, lease, 1)
		ended <- err
	}
	left := func() {
		t.Helper()
		select {
		case err := <-ended:
			require.ErrorContains(t, err, "context")
		case <-time.After(20 * time.Second):
			require.FailNow(t, "it waits for the nodes")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go acquire(ctx, "first")
	for _, n := range q.nodes {
		until(t, func() bool {
			n.guard.mu.Lock()
			defer n.guard.mu.Unlock()
			return n.guard.checking != nil
		})
	}
	short, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	go acquire(short, "second")
	left()
	cancel()
	left()
}

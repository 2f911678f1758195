package quorum

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Even without a guard, two clients of one server are found out, if one of them was away at
// first.
func TestUnguardedTwiceIsRefusedLater(t *testing.T) {
	s, other := redistest.Start(t), redistest.Start(t)
	slow := redistest.NewProxy(t, s.Addr())
	again := s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress, o.ForceSingleClient = []string{slow.Addr()}, true })
	slow.Refuse(true)
	slow.Cut()
	q := New([]rueidis.Client{s.Client(t), again, other.Client(t)},
		Config{NodeTimeout: 10 * time.Second, Lease: lease, Longest: lease, Unguarded: true, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(q.Close)
	a, err := q.Acquire(bounded(t), "k", ownX, lease, 1)
	require.NoError(t, err)
	require.True(t, a.OK)

	other.Kill()
	slow.Refuse(false)
	until(t, func() bool {
		owner := fresh(ownY)
		a, err := q.Acquire(bounded(t), owner, owner, lease, 1)
		require.False(t, a.OK, "one server counted twice")
		return strings.Contains(err.Error(), "of one server")
	})
}

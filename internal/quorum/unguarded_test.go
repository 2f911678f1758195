package quorum

import (
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// Two clients of one server are found out without a guard, too, where one of them
// was away at the first contact.
func TestUnguardedTwiceIsRefusedLater(t *testing.T) {
	s, other := redistest.Start(t), redistest.Start(t)
	slow := redistest.NewProxy(t, s.Addr())
	again := s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress, o.ForceSingleClient = []string{slow.Addr()}, true })
	slow.Refuse(true)
	slow.Cut()
	q := New([]rueidis.Client{s.Client(t), again, other.Client(t)},
		Config{NodeTimeout: 50 * time.Millisecond, Longest: lease, Unguarded: true, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(q.Close)
	a, err := q.Acquire(bounded(t), "k", "x", lease, 1)
	require.NoError(t, err)
	require.True(t, a.OK)

	slow.Refuse(false)
	until(t, func() bool {
		a, err = q.Acquire(bounded(t), "k2", "y", lease, 1)
		_, _ = q.Release(bounded(t), "k2", "y", 0)
		return scripts.OutcomeOf(err) == scripts.Refused
	})
	require.ErrorContains(t, err, "of one server")
	other.Kill()
	for range 10 {
		a, _ = q.Acquire(bounded(t), "k3", "z", lease, 1)
		require.False(t, a.OK, "one server counted twice")
	}
}

package pubsub

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// switching is a client of a Sentinel set, whose master is now.
type switching struct {
	rueidis.Client
	now *atomic.Pointer[rueidis.Client]
}

func (switching) Mode() rueidis.ClientMode           { return rueidis.ClientModeSentinel }
func (c switching) Nodes() map[string]rueidis.Client { return (*c.now.Load()).Nodes() }
func (c switching) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return (*c.now.Load()).Do(ctx, cmd)
}
func (c switching) Dedicate() (rueidis.DedicatedClient, func()) { return (*c.now.Load()).Dedicate() }

// Subscriptions follow a Sentinel's client to another master while the old one still serves the connection.
func TestF36_FollowsTheMaster(t *testing.T) {
	old, next := redistest.Start(t), redistest.Start(t)
	before, after := old.Client(t, named), next.Client(t, named)
	c := switching{before, new(atomic.Pointer[rueidis.Client])}
	c.now.Store(&before)
	s := New(c, nil)
	t.Cleanup(s.Close)
	sub := s.Subscribe("ch")
	awaitLive(t, sub)

	c.now.Store(&after)
	await(t, sub, "live again", func(st State) bool { return st.Live && st.Epoch == 2 })
	m := next.Do(t, "PUBLISH", "ch", "0")
	n, err := m.AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.Eventually(t, func() bool { return clients(t, old, "pubsub") == 0 }, patience, time.Millisecond)
}

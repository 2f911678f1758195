package scripts

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Every verb works on the embedded server that examples use.
func TestEmbeddedServer(t *testing.T) {
	m := miniredis.RunT(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.Addr()}, ForceSingleClient: true, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	ctx, n := bounded(t), NewNode(client)

	acquired(t, n, "k", ownA)
	acquired(t, n, "k", ownA)
	a, err := n.Acquire(ctx, "k", ownB, lease)
	require.NoError(t, err)
	require.Equal(t, Acquired{Remaining: lease}, a)

	ours, err := n.Recount(ctx, "k", ownA, 2)
	require.NoError(t, err)
	require.True(t, ours)
	h, err := n.Inspect(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, Holder{Owner: ownA, Entries: 2, Remaining: lease}, h)

	require.NoError(t, m.Set("string", "x"))
	answers := make([]Answer, 3)
	require.NoError(t, n.Renew(ctx, time.Minute, []string{"k", "string", "free"}, []string{ownA, ownA, ownA}, answers))
	require.Equal(t, []Answer{Renewed, NotOurs, NotOurs}, answers)
	require.Equal(t, time.Minute, m.TTL("k"))

	r, err := n.Release(ctx, "k", ownB, 0)
	require.NoError(t, err)
	require.Equal(t, Released{}, r)
	r, err = n.Release(ctx, "k", ownA, 0)
	require.NoError(t, err)
	require.Equal(t, Released{Ours: true}, r)

	f := Fencing{Reserve: 10, Expiry: time.Hour}
	first, err := n.AcquireFenced(ctx, "k", ownA, lease, f)
	require.NoError(t, err)
	require.Equal(t, first.FenceEnd, first.Fence+9)
	r, err = n.Release(ctx, "k", ownA, first.Fence)
	require.NoError(t, err)
	require.True(t, r.Ours)
	value, err := m.Get(counter("k"))
	require.NoError(t, err)
	require.Equal(t, decimal(first.Fence), value)
	second, err := n.AcquireFenced(ctx, "k", ownB, lease, f)
	require.NoError(t, err)
	require.Greater(t, second.Fence, first.Fence)

	r, err = n.CleanUp(ctx, "k", ownB)
	require.NoError(t, err)
	require.True(t, r.Ours)
	a, err = n.Acquire(ctx, "k", ownB, lease)
	require.NoError(t, err)
	require.Equal(t, Acquired{Gone: true}, a)
	require.Equal(t, time.Minute, m.TTL(tombstone("k", ownB)))

	acquired(t, n, "k", ownA)
	existed, err := n.ForceRelease(ctx, "k")
	require.NoError(t, err)
	require.True(t, existed)
	h, err = n.Inspect(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, Holder{}, h)

	for _, name := range []string{"acquire", "recount", "release", "clean_up", "force_release", "inspect"} {
		err := verbs[name](ctx, n, "string", ownA)
		require.ErrorContains(t, err, "WRONGTYPE", name)
		require.Equal(t, Refused, OutcomeOf(err), name)
	}
}

package scripts

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Every verb of the fair queues works on the embedded server that examples use.
func TestEmbeddedServerFair(t *testing.T) {
	m := miniredis.RunT(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.Addr()}, ForceSingleClient: true, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	ctx, settings := bounded(t), settingsOf(clientA)
	settings.Fencing, settings.Members = Fencing{Reserve: 10, Expiry: time.Hour}, 5
	f := NewFair(NewNode(client), settings)

	a, err := f.Acquire(ctx, "k", ofA(1), lease)
	require.NoError(t, err)
	require.True(t, a.OK)
	e, err := f.Enter(ctx, "k", ofA(2), ofA(3), ofA(4))
	require.NoError(t, err)
	require.Equal(t, []Place{Waiting, Waiting, Waiting}, e.Places)
	p, err := f.Release(ctx, "k", ofA(1), a.Fence, true)
	require.NoError(t, err)
	require.Equal(t, ofA(2), p.Grant.Owner)
	require.Equal(t, []string{ofA(3), ofA(4)}, p.Grant.Members)
	require.Greater(t, p.Grant.Fence, a.Fence)
	require.Equal(t, firstLease, m.TTL("k"))
	c, err := f.Confirm(ctx, "k", ofA(2), lease)
	require.NoError(t, err)
	require.True(t, c.OK)
	require.Equal(t, lease, m.TTL("k"))

	probed := make([]Probed, 1)
	asked := []Heartbeat{{Key: "k", Owners: []string{ofA(3), ofA(9)}, Distances: []time.Duration{time.Minute, time.Minute}}}
	require.NoError(t, f.Heartbeat(ctx, asked, probed))
	require.Equal(t, []Probed{{Grant: Grant{Owner: ofA(2)}, Absent: []int{1}}}, probed)
	h, waiting, err := f.Inspect(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, Holder{Owner: ofA(2), Entries: 1, Remaining: lease}, h)
	require.Equal(t, 2, waiting)

	p, err = f.Release(ctx, "k", ofA(2), 0, false, ofA(3))
	require.NoError(t, err)
	require.Equal(t, ofA(4), p.Grant.Owner)
	e, err = f.Enter(ctx, "k", ofA(1), ofA(5))
	require.NoError(t, err)
	require.Equal(t, []Place{Gone, Waiting}, e.Places)
	existed, err := f.ForceRelease(ctx, "k") // nobody listens to the inbox
	require.NoError(t, err)
	require.True(t, existed)
	require.False(t, m.Exists("k"))
	p, err = f.Leave(ctx, "k", 1, ofA(5))
	require.NoError(t, err)
	require.Equal(t, Passed{Ours: true}, p)
	require.False(t, m.Exists(queue("k")))
	require.False(t, m.Exists(scores("k")))
}

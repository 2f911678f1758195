package pubsub

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A master that hangs, before or after the connection to it stands, delays no other's channels, and not Close.
func TestG9_PausedMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, "--cluster-node-timeout", "60000")
	names := spread(t, c, 3)
	hanging := c.Masters(t)[0]
	hung := names[hanging.Addr()]
	delete(names, hanging.Addr())
	for way, sharded := range ways() {
		t.Run(way, func(t *testing.T) {
			client := c.Client(t, slow)
			s := openCluster(t, client, sharded, patient)
			awaitLive(t, s.Subscribe(hung[0]))
			fresh := openCluster(t, client, sharded, patient)
			hanging.Pause()
			defer hanging.Resume()
			for _, s := range []*Subscriber{s, fresh} {
				waiting := s.Subscribe(hung[1])
				for _, names := range names {
					for _, name := range names {
						began := time.Now()
						awaitLive(t, s.Subscribe(name))
						require.Less(t, time.Since(began), prompt)
					}
				}
				require.False(t, waiting.State().Live)
			}
			began := time.Now()
			s.Close()
			fresh.Close()
			require.Less(t, time.Since(began), prompt)
		})
	}
}

// A cluster that is down keeps live channels live, and serves those that come or go meanwhile when it is up again.
func TestF26_ClusterDown(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	names := spread(t, c, 3)
	dead, other := c.Masters(t)[0], c.Masters(t)[1]
	for way, sharded := range ways() {
		t.Run(way, func(t *testing.T) {
			if sharded {
				other.Do(t, "CONFIG", "SET", "cluster-allow-pubsubshard-when-down", "no")
			}
			client := c.Client(t)
			s := openCluster(t, client, sharded, patient)
			there, here := names[dead.Addr()], names[other.Addr()]
			lost, kept, dropped := s.Subscribe(there[0]), s.Subscribe(here[0]), s.Subscribe(here[1])
			awaitLive(t, lost, kept, dropped)
			dead.Kill()
			await(t, lost, "told of the loss", func(st State) bool { return !st.Live })
			locktest.Await(t, func() bool {
				return hasCode(locktest.ErrOf(other.TryDo("GET", here[0])), "CLUSTERDOWN")
			})
			added := s.Subscribe(here[2])
			dropped.Close()
			if sharded {
				require.Never(t, func() bool { return added.State().Live }, 100*time.Millisecond, 10*time.Millisecond)
			} else {
				awaitLive(t, added)
			}
			dead.Restart()
			awaitLive(t, added)
			again(t, lost, 1)
			require.Equal(t, State{Epoch: 1, Live: true}, kept.State())
			awaitHeard(t, client, sharded, here[1], 0)
		})
	}
}

// A user that may not hear a shard channel still hears the others.
func TestF32_ShardChannelRefused(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "it has no shard channels")
	c := redistest.StartCluster(t, 1, 0)
	srv := c.Masters(t)[0]
	limited(t, srv, "+ssubscribe", "+sunsubscribe", "+cluster")
	var log redistest.Log
	s := openCluster(t, c.Client(t, asUser), true, withLog(&log), withPace(soon), patient)
	first, bad, last := s.Subscribe("ok:1"), s.Subscribe("bad"), s.Subscribe("ok:2")
	awaitLive(t, first, last)
	require.Equal(t, State{}, bad.State())
	locktest.Await(t, func() bool { return log.Count("channels refused") == 1 })
	first.Close()
	srv.Do(t, "ACL", "SETUSER", "limited", "&bad")
	awaitLive(t, bad)
	require.EqualValues(t, 1, last.State().Epoch)
	require.Zero(t, log.Count("connection lost"))
}

// As long as nothing tells whether channels are sharded, nobody is subscribed; then all are.
func TestCluster_ShardedNotKnown(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 1, 0)
	client := c.Client(t)
	var asked atomic.Int64
	s := NewCluster(client, cluster.New(client), func(context.Context) (bool, error) {
		if asked.Add(1) < 4 {
			return false, errors.New("no answer")
		}
		return false, nil
	}, nil)
	defer s.Close()
	subs := []*Subscription{s.Subscribe("a"), s.Subscribe("b")}
	gone := s.Subscribe("gone")
	gone.Close()
	awaitLive(t, subs...)
	require.EqualValues(t, 4, asked.Load())
	require.Equal(t, 2, known(s))

	s = NewCluster(client, cluster.New(client), func(ctx context.Context) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	}, nil)
	require.Zero(t, s.Subscribe("a").State())
	s.Close() // at once
}

// A master of which the client has not heard gets its channels all the same.
func TestF13_SlotMovesToAnUnknownNode(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 0)
	known, unknown := c.Masters(t)[0], c.Masters(t)[1]
	var slots []string
	for slot := 8192; slot < cluster.Slots; slot++ {
		slots = append(slots, strconv.Itoa(slot))
	}
	unknown.Do(t, append([]string{"CLUSTER", "DELSLOTS"}, slots...)...)
	known.Do(t, append([]string{"CLUSTER", "DELSLOTS"}, slots...)...)
	known.Do(t, append([]string{"CLUSTER", "ADDSLOTS"}, slots...)...)
	client := c.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{known.Addr()} })
	if client.Nodes()[unknown.Addr()] != nil {
		t.Skip("CLUSTER SHARDS, of newer servers, lists masters without slots")
	}
	sharded := ways()["sharded"]
	s := openCluster(t, client, sharded, withPace(func(p *pace) { p.settled = p.most }))
	sub := s.Subscribe("a")
	awaitLive(t, sub)
	c.Migrate(t, c.Slot(t, "a"), unknown)
	again(t, sub, 1)
	require.EqualValues(t, 1, locktest.Must(release(t.Context(), client, sharded, "a"))(t))
}

// A shard subscription that the server ends, and one that it answers with MOVED, follow the slot, without a look at the
// slots that comes by itself.
func TestF13_ShardChannelFollows(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "it has no shard channels")
	c := redistest.StartCluster(t, 2, 0)
	client := c.Client(t)
	never := withPace(func(p *pace) { p.most, p.settled = time.Hour, time.Hour })
	s := openCluster(t, client, true, never, patient)
	stale := openCluster(t, client, true, never)
	ended := s.Subscribe("a")
	awaitLive(t, ended, stale.Subscribe("b"), stale.Subscribe("c"))
	time.Sleep(2 * defaultPace.unsettled) // the looks that a new channel causes are over, which is no event
	masters := c.Masters(t)
	to := masters[0]
	if to == c.Owner(t, "a") {
		to = masters[1]
	}
	c.Migrate(t, c.Slot(t, "a"), to)
	again(t, ended, 1)
	require.EqualValues(t, 2, ended.State().Epoch)
	require.NotEqual(t, to.Addr(), stale.slots.Node("a"))
	awaitLive(t, stale.Subscribe("a"))
	require.EqualValues(t, 2, locktest.Must(release(t.Context(), client, true, "a"))(t))
}

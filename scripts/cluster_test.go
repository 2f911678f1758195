package scripts

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// onCluster is a Node on a cluster of three masters.
func onCluster(t *testing.T) (*redistest.Cluster, *Node) {
	c := redistest.StartCluster(t, 3, 0)
	client := c.Client(t)
	return c, NewNodeWith(client, NodeSettings{Cluster: cluster.New(client)})
}

// other is a master that does not have the slot of key.
func other(t *testing.T, c *redistest.Cluster, key string) *redistest.Server {
	t.Helper()
	if to := c.Masters(t)[0]; to != c.Owner(t, key) {
		return to
	}
	return c.Masters(t)[1]
}

// While a slot moves, a call that names a key on either side is answered TRYAGAIN. It is
// made again until the slot has moved, or surely not done.
func TestClusterSlotMoves(t *testing.T) {
	redistest.NeedRedis7(t, "6.2 answers ASK")
	c, n := onCluster(t)
	ctx, key := bounded(t), "k"
	slot, to := c.Slot(t, key), other(t, c, key)
	c.BeginMigration(t, slot, to)
	_, err := n.Acquire(ctx, key, "o:1", time.Minute)
	require.Equal(t, Unavailable, OutcomeOf(err), err)
	require.ErrorContains(t, err, "TRYAGAIN")
	confirmed := NewNodeWith(n.client, NodeSettings{Cluster: n.Cluster, Replicas: 1, ReplicaTimeout: time.Second})
	_, err = confirmed.Acquire(ctx, key, "o:1", time.Minute)
	require.Equal(t, Unavailable, OutcomeOf(err), err)
	require.Regexp(t, "ASK|TRYAGAIN", err.Error())

	acquired := make(chan error, 1)
	go func() {
		a, err := n.Acquire(ctx, key, "o:2", time.Minute)
		if err == nil && !a.OK {
			err = errors.New("not acquired")
		}
		acquired <- err
	}()
	c.MoveKeys(t, slot, to)
	c.EndMigration(t, slot, to)
	require.NoError(t, <-acquired)
	require.True(t, must(n.Recount(ctx, key, "o:2", 2))(t))
}

// While a slot moves, some of its keys are at either node. Holds are renewed there, also those that
// replicas have to confirm.
func TestClusterRenewsWhileASlotMoves(t *testing.T) {
	for _, replicas := range []int{0, 1} {
		t.Run(fmt.Sprint(replicas, " replicas"), func(t *testing.T) {
			c := redistest.StartCluster(t, 2, replicas)
			client := c.Client(t)
			n := NewNodeWith(client, NodeSettings{Cluster: cluster.New(client), Replicas: replicas, ReplicaTimeout: time.Second})
			ctx := bounded(t)
			var keys, owners []string
			for i := range 25 {
				keys, owners = append(keys, fmt.Sprint("{tag}", i)), append(owners, fmt.Sprint("o:", i))
				a := must(n.Acquire(ctx, keys[i], owners[i], time.Minute))(t)
				require.True(t, a.OK)
			}
			slot, to := c.Slot(t, "{tag}"), other(t, c, "{tag}")
			c.BeginMigration(t, slot, to)
			c.MoveKeys(t, slot, to, keys[:12]...)
			answers := make([]Answer, len(keys))
			until(t, func() bool { // on a busy machine, a client may meet the move in the middle, and is told so
				err := n.Renew(ctx, time.Hour, keys, owners, answers)
				require.True(t, err == nil || OutcomeOf(err) == Unavailable, err)
				return err == nil
			})
			for i, a := range answers {
				require.Equal(t, Renewed, a, keys[i])
			}
			c.MoveKeys(t, slot, to)
			c.EndMigration(t, slot, to)
		})
	}
}

// A call that meets a cluster that is down is made again, and surely not done if that lasts.
func TestClusterIsDown(t *testing.T) {
	c := redistest.StartCluster(t, 1, 0)
	client, s := c.Client(t), c.Masters(t)[0]
	n := NewNodeWith(client, NodeSettings{Cluster: cluster.New(client)})
	key := "k"
	slot := fmt.Sprint((c.Slot(t, key) + 1) % cluster.Slots)
	s.Do(t, "CLUSTER", "DELSLOTS", slot)
	_, err := n.Acquire(bounded(t), key, "o:1", time.Minute)
	require.Equal(t, Unavailable, OutcomeOf(err), err)
	require.ErrorContains(t, err, "CLUSTERDOWN")
	info := text(t, s, "INFO", "errorstats")
	require.Regexp(t, `errorstat_CLUSTERDOWN:count=([2-9]|\d\d)`, info, "not made again")
	s.Do(t, "CLUSTER", "ADDSLOTS", slot)
	acquired(t, n, key, "o:1")
}

// A user without the right to ask for the slots is refused, and does not wait.
func TestClusterSlotsAreRefused(t *testing.T) {
	c, n := onCluster(t)
	for _, m := range c.Masters(t) {
		m.Do(t, "ACL", "SETUSER", "default", "-cluster")
		t.Cleanup(func() { m.Do(t, "ACL", "SETUSER", "default", "+cluster") })
	}
	_, err := n.Acquire(bounded(t), "k", "o:1", time.Minute)
	require.Equal(t, Refused, OutcomeOf(err), err)
	require.ErrorContains(t, err, "NOPERM")
}

// Calls for several keys are made per slot, and one that is refused costs the others
// nothing. Several keys are taken at once only if they are of one slot.
func TestClusterSeveralKeys(t *testing.T) {
	c, n := onCluster(t)
	ctx := bounded(t)
	var keys, owners []string
	for i := range 50 {
		keys, owners = append(keys, fmt.Sprint("k", i)), append(owners, clientA+":01")
		if i != 7 {
			a := must(n.Acquire(ctx, keys[i], owners[i], time.Minute))(t)
			require.True(t, a.OK)
		}
	}
	c.Owner(t, keys[3]).Do(t, "SET", keys[3], "not a lock")
	answers := make([]Answer, len(keys))
	require.NoError(t, n.Renew(ctx, time.Hour, keys, owners, answers))
	for i, a := range answers {
		require.Equal(t, i == 3 || i == 7, a == NotOurs, keys[i])
		require.Equal(t, i != 3 && i != 7, a == Renewed, keys[i])
	}

	f := NewFair(n, settingsOf(clientA))
	asked := []Heartbeat{{Key: keys[0], Owners: []string{clientA + ":09"}, Distances: []time.Duration{0}}, {Key: keys[3]}, {Key: "free"}}
	probed := make([]Probed, len(asked))
	require.NoError(t, f.Heartbeat(ctx, asked, probed))
	require.Equal(t, Probed{Grant: Grant{Owner: clientA + ":01"}, Absent: []int{0}}, probed[0])
	require.ErrorContains(t, probed[1].Err, "WRONGTYPE")
	require.Equal(t, Probed{}, probed[2])

	ok := must(n.AcquireAll(ctx, []string{"a", "b", "c"}, []string{"o:1", "o:2", "o:3"}, time.Minute))(t)
	require.False(t, ok)
	ok = must(n.AcquireAll(ctx, []string{"{a}1", "{a}2"}, []string{"o:1", "o:2"}, time.Minute))(t)
	require.True(t, ok)
}

// A key and the names of its parts share a slot, or the key is refused, before anything is
// sent.
func TestClusterNames(t *testing.T) {
	n := NewNodeWith(silent{}, NodeSettings{Cluster: cluster.New(nil)})
	for _, key := range []string{"k", "{tag}k", "k{tag}", "a{b}c{d}", "{{a}}", "{}", "{", "}", "a}b", "a{b", "{}{a}", "a}{b}", "x{y}z}"} {
		same := true
		for _, name := range []string{counter(key), queue(key), tombstone(key, "c:01"), Channel(key), Channel(key) + ":c"} {
			same = same && cluster.SameSlot(key, name)
		}
		require.Equal(t, same, oneSlot(key), key)
		if !same {
			_, err := n.Acquire(bounded(t), key, "o:1", time.Minute)
			require.Equal(t, Refused, OutcomeOf(err), key)
			require.ErrorContains(t, err, "hash tag")
		}
	}
}

// silent is a client that must not be used.
type silent struct{ rueidis.Client }

func (silent) Do(context.Context, rueidis.Completed) rueidis.RedisResult { panic("I/O") }

// A release notifies the channels that are chosen.
func TestClusterChannels(t *testing.T) {
	redistest.NeedRedis7(t, "6.2 has no shard channels")
	c, _ := onCluster(t)
	for _, shards := range []bool{true, false} {
		t.Run(fmt.Sprint("shards ", shards), func(t *testing.T) {
			client := c.Client(t)
			n := NewNodeWith(client, NodeSettings{Cluster: cluster.New(client), Shards: &shards})
			ctx, key := bounded(t), fmt.Sprint("k", shards)
			acquired(t, n, key, "o:1")
			conn, end := c.Client(t).Nodes()[c.Owner(t, key).Addr()].Dedicate()
			defer end()
			came := make(chan string, 1)
			conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { came <- m.Channel }})
			subscribe := conn.B().Subscribe().Channel(Channel(key)).Build()
			if shards {
				subscribe = conn.B().Ssubscribe().Channel(Channel(key)).Build()
			}
			require.NoError(t, conn.Do(ctx, subscribe).Error())
			said := must(n.Release(ctx, key, "o:1", 0))(t)
			require.Equal(t, Released{Ours: true, Listeners: 1}, said)
			require.Equal(t, Channel(key), <-came)
		})
	}
}

package wire

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// onCluster is a Redis on a cluster. Its writes wait for the replicas of each master, if it has any.
func onCluster(t *testing.T, masters, replicas int) (*redistest.Cluster, *Redis) {
	t.Helper()
	c := redistest.StartCluster(t, masters, replicas)
	client := c.Client(t)
	return c, NewRedis(client, RedisSettings{Cluster: cluster.New(client), Replicas: replicas, ReplicaTimeout: redistest.Patience / 4})
}

// moving begins to move the slot of key to another master.
func moving(t *testing.T, c *redistest.Cluster, key string) (slot int, to *redistest.Server) {
	t.Helper()
	slot, to = c.Slot(t, key), c.Masters(t)[0]
	if to == c.Owner(t, key) {
		to = c.Masters(t)[1]
	}
	c.BeginMigration(t, slot, to)
	return slot, to
}

// While a slot moves, a call that names a key on either side is answered TRYAGAIN. It is
// made again until the slot has moved, or definitely not done.
func TestClusterSlotMoves(t *testing.T) {
	redistest.NeedRedis7(t, "6.2 answers ASK")
	c, n := onCluster(t, 3, 0)
	ctx := bounded(t)
	slot, to := moving(t, c, "k")
	confirmed := NewRedis(n.client, RedisSettings{Cluster: n.Cluster, Replicas: 1, ReplicaTimeout: time.Second})
	for says, n := range map[string]*Redis{"TRYAGAIN": n, "ASK|TRYAGAIN": confirmed} {
		_, err := n.Acquire(ctx, asking("k", ownA))
		require.Equal(t, Unavailable, OutcomeOf(err), err)
		require.Regexp(t, says, err.Error())
	}

	until(t, func() bool { // a busy machine may have no time for a second attempt
		for _, s := range c.Masters(t) {
			s.Do(t, "CONFIG", "RESETSTAT")
		}
		_, err := n.Acquire(ctx, asking("k", ownA))
		require.Equal(t, Unavailable, OutcomeOf(err), err)
		return triedAgain(t, c) > 1
	})

	acquired := make(chan error, 1)
	go func() {
		a, err := n.Acquire(ctx, asking("k", ownB))
		for OutcomeOf(err) == Unavailable { // on a busy machine, the move takes longer than the call
			a, err = n.Acquire(ctx, asking("k", ownB))
		}
		if err == nil && !a.OK {
			err = errors.New("not acquired")
		}
		acquired <- err
	}()
	c.MoveKeys(t, slot, to)
	c.EndMigration(t, slot, to)
	require.NoError(t, <-acquired)
	require.True(t, must(n.SetEntries(ctx, "k", ownB, Entries{Count: 2}))(t))
}

// While a slot moves, some of its keys are at either node. Holds that replicas have to confirm are
// renewed there, too.
func TestClusterRenewsWhileASlotMoves(t *testing.T) {
	c, n := onCluster(t, 2, 1)
	var keys, owners []string
	for i := range 25 {
		keys, owners = append(keys, fmt.Sprint("{tag}", i)), append(owners, ofA(i))
		acquired(t, n, keys[i], owners[i])
	}
	slot, to := moving(t, c, "{tag}")
	c.MoveKeys(t, slot, to, keys[:12]...)
	answers := make([]watchdog.Answer, len(keys))
	until(t, func() bool { // on a busy machine, a client may meet the move in the middle, and is told so
		err := n.Renew(bounded(t), time.Hour, keys, owners, answers)
		require.True(t, err == nil || OutcomeOf(err) == Unavailable, err)
		return err == nil
	})
	require.Equal(t, slices.Repeat([]watchdog.Answer{watchdog.Renewed}, len(keys)), answers)
	c.MoveKeys(t, slot, to)
	c.EndMigration(t, slot, to)
}

// A renewal of several permits is divided at once, and not made again first: it has little time.
func TestClusterRenewsPermitsWhileASlotMoves(t *testing.T) {
	redistest.NeedRedis7(t, "6.2 does not count errors")
	c, n := onCluster(t, 2, 0)
	p := NewSemaphore(n, 2)
	var keys, owners, moved []string
	for i := range 25 {
		keys, owners = append(keys, fmt.Sprint("{tag}", i)), append(owners, ofA(i))
		require.True(t, must(p.Acquire(bounded(t), AcquireRequest{Key: keys[i], Owner: owners[i], Lease: time.Hour}))(t).OK)
		if i < 12 {
			moved = append(moved, keys[i], permitRecord(keys[i]))
		}
	}
	slot, to := moving(t, c, "{tag}")
	c.MoveKeys(t, slot, to, moved...)
	answers := make([]watchdog.Answer, len(keys))
	until(t, func() bool { // the client has met the move
		return p.Renew(bounded(t), time.Hour, keys, owners, answers) == nil
	})
	for _, s := range c.Masters(t) {
		s.Do(t, "CONFIG", "RESETSTAT")
	}
	require.NoError(t, p.Renew(bounded(t), time.Hour, keys, owners, answers))
	require.Equal(t, slices.Repeat([]watchdog.Answer{watchdog.Renewed}, len(keys)), answers)
	require.Equal(t, 1, triedAgain(t, c), "the whole, but none of its ten parts")
	c.MoveKeys(t, slot, to)
	c.EndMigration(t, slot, to)
}

// triedAgain is how many calls the masters have answered TRYAGAIN.
func triedAgain(t *testing.T, c *redistest.Cluster) (n int) {
	t.Helper()
	for _, s := range c.Masters(t) {
		if _, count, found := strings.Cut(text(t, s, "INFO", "errorstats"), "errorstat_TRYAGAIN:count="); found {
			count, _, _ = strings.Cut(count, "\r")
			more, err := strconv.Atoi(count)
			require.NoError(t, err)
			n += more
		}
	}
	return n
}

var again = regexp.MustCompile(`errorstat_CLUSTERDOWN:count=([2-9]|\d\d)`)

// A call that meets a cluster that is down is made again, and definitely not done if that lasts.
func TestClusterIsDown(t *testing.T) {
	c, n := onCluster(t, 1, 0)
	s, slot := c.Masters(t)[0], fmt.Sprint((c.Slot(t, "k")+1)%cluster.Slots)
	s.Do(t, "CLUSTER", "DELSLOTS", slot)
	until(t, func() bool { // a busy machine may have no time for a second attempt
		s.Do(t, "CONFIG", "RESETSTAT")
		_, err := n.Acquire(bounded(t), asking("k", ownA))
		require.Equal(t, Unavailable, OutcomeOf(err), err)
		require.ErrorContains(t, err, "CLUSTERDOWN")
		return again.MatchString(text(t, s, "INFO", "errorstats"))
	})
	s.Do(t, "CLUSTER", "ADDSLOTS", slot)
	acquired(t, n, "k", ownA)
}

// Calls for several keys are made per slot, and one that is refused costs the others
// nothing. Several keys are taken at once only if they are of one slot. A user without the
// right to ask for the slots is refused, and does not wait.
func TestClusterSeveralKeys(t *testing.T) {
	c, n := onCluster(t, 3, 0)
	ctx := bounded(t)
	var keys, owners []string
	for i := range 50 {
		keys, owners = append(keys, fmt.Sprint("k", i)), append(owners, ofA(1))
		if i != 7 {
			acquired(t, n, keys[i], owners[i])
		}
	}
	c.Owner(t, keys[3]).Do(t, "SET", keys[3], "not a lock")
	answers, want := make([]watchdog.Answer, len(keys)), slices.Repeat([]watchdog.Answer{watchdog.Renewed}, len(keys))
	want[3], want[7] = watchdog.NotOurs, watchdog.NotOurs
	require.NoError(t, n.Renew(ctx, time.Hour, keys, owners, answers))
	require.Equal(t, want, answers)

	f := NewFair(n, settingsOf(clientA))
	asked := []HeartbeatRequest{{Key: keys[0], Owners: []string{ofA(9)}, Ahead: []time.Duration{0}}, {Key: keys[3]}, {Key: "free"}}
	replies := make([]HeartbeatReply, len(asked))
	require.NoError(t, f.Heartbeat(ctx, asked, replies))
	require.ErrorContains(t, replies[1].Err, "WRONGTYPE")
	require.Equal(t, []HeartbeatReply{{Grant: Grant{Owner: ofA(1)}, Absent: []int{0}}, {Err: replies[1].Err}, {}}, replies)

	require.False(t, must(n.AcquireAll(ctx, []AcquireRequest{asking("a", ofA(1)), asking("b", ofA(2)), asking("c", ofA(3))}))(t))
	require.True(t, must(n.AcquireAll(ctx, []AcquireRequest{asking("{a}1", ofA(1)), asking("{a}2", ofA(2))}))(t))

	for _, m := range c.Masters(t) {
		m.Do(t, "ACL", "SETUSER", "default", "-cluster")
		t.Cleanup(func() { m.Do(t, "ACL", "SETUSER", "default", "+cluster") })
	}
	stranger := NewRedis(n.client, RedisSettings{Cluster: cluster.New(n.client)})
	requireRefused(t, "NOPERM", errOf(stranger.Acquire(ctx, asking("k", ownA))))
	require.NoError(t, NewFair(stranger, settingsOf(clientA)).Heartbeat(ctx, asked, replies), "each slot has an error of its own")
	requireRefused(t, "NOPERM", replies[0].Err)
}

// A key and the names of its parts share a slot, or the key is refused, before anything is
// sent.
func TestClusterNames(t *testing.T) {
	n := NewRedis(silent{}, RedisSettings{Cluster: cluster.New(nil)})
	for _, key := range []string{"k", "{tag}k", "k{tag}", "a{b}c{d}", "{{a}}", "{}", "{", "}", "a}b", "a{b", "{}{a}", "a}{b}", "x{y}z}"} {
		same := true
		for _, name := range []string{counter(key), queue(key), tombstone(key, "c:01"), scripts.Channel(key), scripts.Channel(key) + ":c"} {
			same = same && cluster.Slot(key) == cluster.Slot(name)
		}
		require.Equal(t, same, oneSlot(key), key)
		if !same {
			requireRefused(t, "hash tag", errOf(n.Acquire(bounded(t), asking(key, ownA))), key)
		}
	}
}

// silent is a client that must not be used.
type silent struct{ rueidis.Client }

func (silent) Do(context.Context, rueidis.Completed) rueidis.RedisResult { panic("I/O") }

// A release notifies the channels that are chosen.
func TestClusterChannels(t *testing.T) {
	redistest.NeedRedis7(t, "6.2 has no shard channels")
	c, _ := onCluster(t, 3, 0)
	for _, shards := range []bool{true, false} {
		t.Run(fmt.Sprint("shards ", shards), func(t *testing.T) {
			client := c.Client(t)
			n := NewRedis(client, RedisSettings{Cluster: cluster.New(client), Shards: &shards})
			key := fmt.Sprint("k", shards)
			acquired(t, n, key, ownA)
			conn, end := c.Client(t).Nodes()[c.Owner(t, key).Addr()].Dedicate()
			defer end()
			came := make(chan string, 1)
			conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { came <- m.Channel }})
			subscribe := conn.B().Subscribe().Channel(scripts.Channel(key)).Build()
			if shards {
				subscribe = conn.B().Ssubscribe().Channel(scripts.Channel(key)).Build()
			}
			require.NoError(t, conn.Do(bounded(t), subscribe).Error())
			require.Equal(t, ReleaseReply{Ours: true, Listeners: 1}, must(n.Release(bounded(t), ReleaseRequest{Key: key, Owner: ownA, Notify: true}))(t))
			require.Equal(t, scripts.Channel(key), <-came)
		})
	}
}

// A master that may evict locks is told of, even while another does not answer.
func TestClusterEviction(t *testing.T) {
	c, n := onCluster(t, 3, 0)
	evicting := func() string {
		policy, err := n.EvictionPolicy(bounded(t))
		require.NoError(t, err)
		return policy
	}
	require.Equal(t, "noeviction", evicting())
	c.Masters(t)[0].Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	require.Equal(t, "allkeys-lru", evicting())
	c.Masters(t)[1].Do(t, "ACL", "SETUSER", "default", "-info")
	c.Masters(t)[2].Do(t, "ACL", "SETUSER", "default", "-info")
	require.Equal(t, "allkeys-lru", evicting())
	c.Masters(t)[0].Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	_, err := n.EvictionPolicy(bounded(t))
	require.Equal(t, Refused, OutcomeOf(err), err)
}

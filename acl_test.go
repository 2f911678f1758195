package holdfast_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/semaphore"
)

// aclUser returns the words of the ACL command in docs/acl.md, with those of the lines that
// have one of the prefixes.
func aclUser(t *testing.T, begins ...string) (words []string) {
	t.Helper()
	for _, begin := range append([]string{"ACL SETUSER "}, begins...) {
		words = append(words, locktest.ACLLine(t, begin)...)
	}
	return words
}

const (
	ofFair      = "~holdfast_heartbeat:"
	ofSemaphore = "~holdfast_permits:"
	ofMultilock = "~holdfast_node "
	ofReadWrite = "~{sku:"
	ofSentinel  = "+role"
	ofReplicas  = "+wait"
	ofCluster   = "~redisson_lock__channel:*"
)

func TestACLUserHasExactlyTheCommandsOfTheScriptsAndOfTheConnection(t *testing.T) {
	connection := []string{"ping", "pubsub|numsub", "subscribe", "unsubscribe"}
	for _, c := range []struct {
		user, scripts []string
	}{
		{aclUser(t), scripts.Commands()},
		{aclUser(t, ofFair), append(scripts.Commands(), scripts.FairCommands()...)},
		{aclUser(t, ofSemaphore), append(scripts.Commands(), scripts.SemaphoreCommands()...)},
		{aclUser(t, ofMultilock), scripts.QuorumCommands()},
		{aclUser(t, ofReadWrite), append(scripts.Commands(), scripts.RWLockCommands()...)},
		{aclUser(t, ofSentinel), append(scripts.Commands(), "role")},
		{aclUser(t, ofCluster), append(scripts.Commands(), scripts.ClusterCommands()...)},
	} {
		var commands []string
		for _, word := range c.user {
			if command, ok := strings.CutPrefix(word, "+"); ok {
				commands = append(commands, command)
			}
		}
		all := append(c.scripts, connection...)
		slices.Sort(all)
		require.ElementsMatch(t, slices.Compact(all), commands)
	}
}

// What the suite of contracts does not do as the user of docs/acl.md.
func TestF32_ACLUserWithoutFencingIsRefusedNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, slices.DeleteFunc(aclUser(t), func(word string) bool {
		return slices.Contains([]string{"~redisson_lock_token:*", "+get", "+time"}, word)
	})...)
	here, there := openTwo(t, twice(func(c rueidis.Client) (locktest.Locker, error) {
		return rlock.New(c, holdfast.WithLease(shortLease))
	}), s.Client(t, asShop), s.Client(t, asShop))
	for _, key := range []string{"sku:42", "sku:{42}"} {
		useEverything(t, s, wire.NewRedis(s.Client(t, asShop), wire.RedisSettings{}), key, here, there)
	}
	refusedNothing(t, []*redistest.Server{s})
}

// shortLease is renewed soon, and outlasts a pause of a busy machine.
const shortLease = 10 * time.Second

// asShop has a client connect as the user of docs/acl.md.
func asShop(o *rueidis.ClientOption) { o.Username, o.Password = "shop", "secret" }

// opener opens a locker on the Redis of a client.
type opener func(rueidis.Client) (locktest.Locker, error)

// pair opens two lockers that want the same keys. rights begin the lines of docs/acl.md that it needs beside the first.
type pair struct {
	here, there opener
	rights      []string
}

func twice(open opener, rights ...string) pair { return pair{open, open, rights} }

// onOneRedis are pairs of each kind that works on the Redis of one client.
var onOneRedis = map[string]pair{
	"rlock": twice(func(c rueidis.Client) (locktest.Locker, error) {
		return rlock.New(c, holdfast.WithLease(shortLease), holdfast.WithFencing())
	}),
	"fair": twice(func(c rueidis.Client) (locktest.Locker, error) {
		return fair.New(c, holdfast.WithLease(shortLease), fair.WithWaiterTTL(5*time.Second), holdfast.WithFencing())
	}, ofFair),
	"semaphore": twice(func(c rueidis.Client) (locktest.Locker, error) {
		return semaphore.New(c, 1, holdfast.WithLease(shortLease))
	}, ofSemaphore),
	"rwlock, readers wait": {openWriter, openReader, []string{ofReadWrite}},
	"rwlock, writers wait": {openReader, openWriter, []string{ofReadWrite}},
}

func openWriter(c rueidis.Client) (locktest.Locker, error) {
	return rwlock.New(c, holdfast.WithLease(shortLease), holdfast.WithFencing())
}

func openReader(c rueidis.Client) (locktest.Locker, error) {
	l, err := rwlock.New(c, holdfast.WithLease(shortLease), holdfast.WithFencing())
	if err != nil {
		return nil, err
	}
	return struct {
		holdfast.Locker
		holdfast.Operator
	}{l.RLocker(), l}, nil
}

func TestF32_ACLUserOfASentinelSetIsRefusedNothing(t *testing.T) {
	t.Parallel()
	set := redistest.StartSentinel(t)
	servers := append(set.Replicas(), set.Master())
	for _, s := range servers {
		s.Do(t, aclUser(t, ofFair, ofSemaphore, ofReadWrite, ofSentinel, ofReplicas)...)
	}
	kinds := maps.Clone(onOneRedis)
	kinds["rlock with replicas"] = twice(func(c rueidis.Client) (locktest.Locker, error) {
		return rlock.New(c, holdfast.WithLease(15*time.Second), holdfast.WithReplicas(2, 2*time.Second))
	})
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			here, there := openTwo(t, both, set.Client(t, asShop), set.Client(t, asShop))
			redis := wire.NewRedis(set.Client(t, asShop), wire.RedisSettings{})
			useEverything(t, set.Master(), redis, "sku:42", here, there)
			refusedNothing(t, servers)
		})
	}
}

func TestF32_ACLUserOfAClusterIsRefusedNothing(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "it has no shard channels")
	c := redistest.StartCluster(t, 2, 0)
	masters := c.Masters(t)
	kinds := maps.Clone(onOneRedis)
	kinds["fair without shard channels"] = twice(func(c rueidis.Client) (locktest.Locker, error) {
		return fair.New(c, holdfast.WithLease(shortLease), fair.WithWaiterTTL(5*time.Second), holdfast.WithShardedPubSub(false))
	}, ofFair)
	for name, both := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, s := range masters {
				s.Do(t, aclUser(t, append(both.rights, ofCluster)...)...)
			}
			here, there := openTwo(t, both, c.Client(t, asShop), c.Client(t, asShop))
			key := "sku:{42} " + name
			slot := c.Slot(t, key)
			from, to := c.Owner(t, key), masters[0]
			if from == to {
				to = masters[1]
			}
			lease := locktest.Lock(t, here, t.Context(), key)
			c.BeginMigration(t, slot, to)
			c.MoveKeys(t, slot, to)
			before := lease.Deadline()
			require.Eventually(t, func() bool { return lease.Deadline().After(before.Add(shortLease / 2)) }, redistest.Patience, time.Millisecond)
			c.EndMigration(t, slot, to)
			require.NoError(t, lease.Unlock(t.Context()))

			client := c.Client(t, asShop)
			redis := wire.NewRedis(client, wire.RedisSettings{Cluster: cluster.New(client)})
			useEverything(t, to, redis, key, here, there)
			refusedNothing(t, masters)
		})
	}
}

func openTwo(t *testing.T, both pair, one, other rueidis.Client) (here, there locktest.Locker) {
	t.Helper()
	open := func(open opener, client rueidis.Client) locktest.Locker {
		return locktest.Opened(open(client))(t)
	}
	return open(both.here, one), open(both.there, other)
}

func refusedNothing(t *testing.T, servers []*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		locktest.RefusedNothing(t, s, "shop")
	}
}

// useEverything makes each kind of call to Redis: take, renew, enter again,
// inspect, fail, wait, be woken or granted, confirm, give up, release, undo,
// take several, free by force.
func useEverything(t *testing.T, server *redistest.Server, redis *wire.Redis, key string, here, there locktest.Locker) {
	t.Helper()
	ctx := t.Context()
	nothing := func(context.Context) error { return nil }
	lease := locktest.Lock(t, here, ctx, key)
	before := lease.Deadline()
	require.Eventually(t, func() bool { return lease.Deadline().After(before) }, redistest.Patience, time.Millisecond)
	require.NoError(t, here.Do(lease.Bind(ctx), key, func(context.Context) error {
		status, err := there.Inspect(ctx, key)
		require.Equal(t, 2, status.Entries)
		return err
	}))
	require.ErrorIs(t, locktest.ErrOf(there.TryLock(ctx, key)), holdfast.ErrNotAcquired)
	require.ErrorIs(t, locktest.ErrOf(there.TryLockFor(ctx, key, 2*time.Second)), holdfast.ErrNotAcquired) // longer than a heartbeat's period

	require.Eventually(t, func() bool { return listeners(t, server) == 0 }, redistest.Patience, time.Millisecond)
	woken := make(chan error, 5)
	for i := range cap(woken) {
		var opts []holdfast.LockOption
		if i == 0 { // one hold may serve the others
			opts = append(opts, holdfast.FixedLease(30*time.Second))
		}
		go func() { woken <- there.Do(ctx, key, nothing, opts...) }()
	}
	require.Eventually(t, func() bool {
		status, err := here.Inspect(ctx, key)
		_, queued := here.(*fair.Locker)
		return err == nil && listeners(t, server) > 0 && (!queued || status.Waiting == cap(woken))
	}, redistest.Patience, time.Millisecond)
	require.NoError(t, lease.Unlock(ctx))
	for range cap(woken) {
		require.NoError(t, <-woken)
	}

	require.Eventually(t, func() bool { // a semaphore may have taken a permit that nobody wants any more
		status, err := here.Inspect(ctx, key)
		return err == nil && !status.Held
	}, redistest.Patience, time.Millisecond)
	require.NoError(t, locktest.ErrOf(redis.Release(ctx, wire.ReleaseRequest{Key: key, Owner: "somebody", Notify: true, Doubt: true})))
	require.NoError(t, locktest.Must(multilock.LockAll(ctx, multilock.Keys(here, key, key+" and more")))(t).Unlock(ctx))

	locktest.Lock(t, here, ctx, key)
	require.True(t, locktest.Must(there.ForceUnlock(ctx, key))(t))
}

// listeners counts the channels of locks with subscribers on a server.
func listeners(t *testing.T, s *redistest.Server) (n int) {
	t.Helper()
	for _, kind := range []string{"CHANNELS", "SHARDCHANNELS"} { // before Redis 7 there are none of these
		for _, pattern := range []string{"redisson_lock__channel:*", "redisson_rwlock:*", "holdfast_permits_channel:*"} {
			reply, _ := s.TryDo("PUBSUB", kind, pattern)
			channels, _ := reply.ToArray()
			n += len(channels)
		}
	}
	return n
}

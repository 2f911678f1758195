package faults

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

func init() {
	register("F32_NoRight", func(t *testing.T, k locktest.Kind) {
		testRefused(t, k, "NOPERM", locktest.AsLeast, func(s locktest.Topology) { s.Do(t, "ACL", "SETUSER", "least", "resetkeys") })
	}, ofOneHolder|realServers)
	register("F33_WrongType", func(t *testing.T, k locktest.Kind) {
		testRefused(t, k, "WRONGTYPE", func(*rueidis.ClientOption) {}, func(s locktest.Topology) { s.Do(t, "SET", "k", "v") })
	}, ofOneHolder)
	register("F32_OldServer", testOldServer, realServers)
	register("F32_UnknownPasswordIsRepeated", testRepeatedPassword, ofOneHolder|realServers)
	register("F33_ForeignKeyIsLeftAlone", testForeignKey)
	register("F33_HeldKeyReplaced", testKeyReplaced)
	register("F32_EachRightTakenAway", testEachRightTakenAway, realServers)
	register("F32_ForbiddenKeyAmongLeases", testForbiddenAmongLeases, realServers)
	register("F32_ForbiddenKeyAmongWaiters", testForbiddenAmongWaiters, fairOnly|realServers)
}

// testRefused requires that new callers and waiters immediately get an error that waiting
// cannot cure, as it is. A waiter whose key is forbidden gets it after an outage.
func testRefused(t *testing.T, k locktest.Kind, code string, client func(*rueidis.ClientOption), begin func(locktest.Topology)) {
	s := startLeast(t, k)
	locker := k.Open(t, s.Client(t, client), locktest.Options{Lease: locktest.Long, MaxOutage: ptr(time.Second)})
	other := k.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long})
	refused := func(err error) {
		t.Helper()
		if code == "WRONGTYPE" {
			locktest.RequireSentinel(t, err, holdfast.ErrWrongType)
		} else {
			locktest.RequireSentinel(t, err, nil)
		}
		require.ErrorContains(t, err, code)
	}

	_ = locktest.Lock(t, other, locktest.Bounded(t), "k")
	waiting := locktest.GoLock(locker, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "k") == 1 })
	begin(s)
	locktest.Await(t, func() bool { // the fault may cut the connection first
		locktest.Publish(t, s, k.Channel("k"), "0") // have the waiter look again
		_, err := locker.Inspect(locktest.Bounded(t), "k")
		return len(waiting) == 1 && err != nil && strings.Contains(err.Error(), code)
	})
	if err := (<-waiting).Err; code == "NOPERM" {
		locktest.RequireSentinel(t, err, holdfast.ErrUnavailable, code)
	} else {
		refused(err)
	}

	everyCall(locker, locktest.Bounded(t), "k", refused)
}

// Keys that others use are told from locks and left as they are.
func testForeignKey(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, Unguarded: true})
	s := r.Server
	fenced := k.Open(t, r.Client, locktest.Options{Lease: locktest.Long, Fencing: true, Unguarded: true})
	foreign := [][]string{
		{"ZADD", "k", "1", "member"},
		{"SET", "k", "v"},
		{"RPUSH", "k", "v"},
		{"HSET", "k", "field", "not a count"},
		{"HSET", "k", "field", "1"},
		{"HSET", "k", "field", "1", "another", "2"},
		{"HSET", "k", "mode", "read"},
		{"HSET", "k", "mode", "write"},
		append([]string{"HSET", "k"}, k.OfAnotherKind()...),
		{"HSET", "k", locktest.Java, "1", "name", "Ann"},
		{"RPUSH", "redisson_lock_token:{k}", "v"},
	}
	for _, value := range []string{"not a number", "", "-1", "1.5", "1e3", "0x10", " 1", "9000000000000001", "99999999999999999999"} {
		foreign = append(foreign, []string{"SET", "redisson_lock_token:{k}", value})
	}
	for _, make := range foreign {
		if k.Permits && make[1] != "k" {
			continue // it has no fences
		}
		s.Do(t, "FLUSHALL")
		s.Do(t, make...)
		before := r.Dump()
		_, err := fenced.TryLock(locktest.Bounded(t), "k")
		require.Error(t, err, make)
		if make[1] == "k" {
			locktest.RequireSentinel(t, err, holdfast.ErrWrongType)
			locktest.RequireSentinel(t, locktest.ErrOf(fenced.Inspect(locktest.Bounded(t), "k")), holdfast.ErrWrongType)
			locktest.RequireSentinel(t, locktest.ErrOf(fenced.ForceUnlock(locktest.Bounded(t), "k")), holdfast.ErrWrongType)
			locktest.RequireSentinel(t, locktest.ErrOf(fenced.Lock(locktest.Bounded(t), "k")), holdfast.ErrWrongType)
		} else if make[0] == "SET" {
			locktest.RequireSentinel(t, err, nil, "fence counter")
		}
		require.Equal(t, before, r.Dump(), make)
	}
}

// A server without a command of the locks fails the first call, with the reason, although it
// may need that command only where a key is held. Such a server repeats the arguments of the
// command. No error and no log line of the locker does; Open sees to it.
func testOldServer(t *testing.T, k locktest.Kind) {
	for _, lacks := range []string{"HRANDFIELD", "EVALSHA"} { // the first is of Redis 6.2
		s := k.Start(t, "--rename-command", lacks, "")
		locker := k.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long, Unguarded: true})
		locktest.RequireSentinel(t, locktest.ErrOf(locker.TryLock(locktest.Bounded(t), "k")), holdfast.ErrOldServer, "nknown")
		locktest.RequireSentinel(t, locktest.ErrOf(locker.Lock(locktest.Bounded(t), "k")), holdfast.ErrOldServer)
		locktest.RequireSentinel(t, locktest.ErrOf(locker.Inspect(locktest.Bounded(t), "k")), holdfast.ErrOldServer)
		require.False(t, locktest.Exists(t, s, "k"))
	}
}

var unknownAuth = regexp.MustCompile("unknown command ['`]AUTH['`]") // "`" before Redis 7

func testRepeatedPassword(t *testing.T, k locktest.Kind) {
	s, other := startLeast(t, k), k.Start(t, "--rename-command", "HELLO", "", "--rename-command", "AUTH", "")
	instead := map[string]string{}
	for i := range s {
		instead[s[i].Addr()] = other[i].Addr()
	}
	var moved atomic.Bool
	locker := k.Open(t, s.Client(t, locktest.AsLeast, func(o *rueidis.ClientOption) {
		o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if moved.Load() {
				addr = instead[addr]
			}
			return dialer.DialContext(ctx, "tcp", addr)
		}
	}), locktest.Options{Lease: locktest.Long, MaxOutage: ptr(5 * time.Second)}) // a slow machine may answer late, but not the last call
	held := locktest.Lock(t, k.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long}), locktest.Bounded(t), "k")
	waiting := locktest.GoLock(locker, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "k") == 1 })
	moved.Store(true)
	s.Do(t, "CLIENT", "KILL", "USER", "least")
	locktest.Await(t, func() bool {
		_, err := locker.TryLock(locktest.Bounded(t), "another")
		return err != nil && unknownAuth.MatchString(err.Error())
	})
	require.Regexp(t, unknownAuth, locktest.Within(t, waiting).Err)
	require.NoError(t, held.Unlock(locktest.Bounded(t)))
}

// A lock whose key another program overwrites is lost, and the key stays as it is.
func testKeyReplaced(t *testing.T, k locktest.Kind) {
	s := k.Start(t)
	locker := k.Open(t, s.Client(t), locktest.Options{Lease: 30 * time.Second})
	l := locktest.Lock(t, locker, locktest.Bounded(t), "k")
	s.Do(t, "SET", "k", "v")
	<-l.Done()
	require.ErrorIs(t, l.Unlock(locktest.Bounded(t)), holdfast.ErrLost)
	require.Equal(t, 1, locktest.Number(t, s, "STRLEN", "k"))
	require.Equal(t, -1, locktest.Number(t, s, "PTTL", "k"))

	l = locktest.Lock(t, locker, locktest.Bounded(t), "other")
	s.Do(t, "SET", "other", "v", "KEEPTTL")
	locktest.RequireSentinel(t, l.Unlock(locktest.Bounded(t)), holdfast.ErrWrongType)
	require.ErrorIs(t, l.Err(), holdfast.ErrReleased)
}

// Each command, key pattern and channel pattern is taken from the user in turn, and then
// every call is made: with and without fences, free, nested, waiting, unlocked and lost.
// Each ends well or says why, nothing is left half done, and no caller is kept out for
// longer than a lease.
func testEachRightTakenAway(t *testing.T, k locktest.Kind) {
	for _, right := range k.Rights(t) {
		if strings.ContainsAny(right[:1], "+~&") {
			for _, fencing := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s,fencing=%t", right, fencing), func(t *testing.T) {
					t.Parallel()
					for tries := 1; rightTakenAway(t, k, right, fencing); tries++ {
						require.Less(t, tries, 10, "no answer in time")
					}
				})
			}
		}
	}
}

// rightTakenAway reports whether an answer came too late to be judged.
func rightTakenAway(t *testing.T, k locktest.Kind, right string, fencing bool) (late bool) {
	lease := 3 * time.Second
	if k.Nodes > 0 { // of which each is waited for a tenth of it
		lease = 10 * time.Second
	}
	s := startLeast(t, k, right)
	fair := func(err error) bool { // it is what it should be
		t.Helper()
		if err != nil && (strings.Contains(err.Error(), "no answer in time") || errors.Is(err, holdfast.ErrLost)) {
			late = true
		} else if err != nil {
			require.Regexp(t, "NOPERM|The user executing the script can't run this command|ACL failure in script", err.Error())
			locktest.RequireSentinel(t, err, nil)
		}
		immortal(t, s)
		return err == nil
	}
	other := k.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long})
	locker, err := k.New(s.Client(t, locktest.AsLeast), locktest.Options{Lease: lease, Fencing: fencing})
	if k.Nodes > 0 && !fair(err) { // that command is part of how a node is looked at
		return late
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = locker.Close() })
	worked := 0
	l, err := locker.Lock(locktest.Bounded(t), "k")
	if fair(err) {
		worked++
		inside, err := locker.Lock(l.Bind(locktest.Bounded(t)), "k")
		if fair(err) {
			fair(inside.Unlock(locktest.Bounded(t)))
		}
		fair(locktest.ErrOf(locker.Inspect(locktest.Bounded(t), "k")))
		for _, err := range locker.Locks(locktest.Bounded(t), "k") {
			refused := !fair(err) && strings.Contains(err.Error(), "scan")
			require.True(t, late || refused == (right == "+scan"), err)
		}
		fair(l.Unlock(locktest.Bounded(t)))
	}
	locktest.Await(t, func() bool { return !locktest.Exists(t, s, "k") }, "it outlives its lease")

	held := locktest.Lock(t, other, locktest.Bounded(t), "k")
	waiting := locktest.GoLock(locker, locktest.Bounded(t), "k")
	fair(locktest.ErrOf(locker.ForceUnlock(locktest.Bounded(t), "free")))
	require.NoError(t, held.Unlock(locktest.Bounded(t)))
	if a := <-waiting; fair(a.Err) {
		worked++
		fair(a.Lease.Unlock(locktest.Bounded(t)))
	}
	locktest.Await(t, func() bool { return !locktest.Exists(t, s, "k") }, "it outlives its lease")
	if !late && slices.Contains([]string{"+publish", "+subscribe", "+unsubscribe", "&redisson_lock__channel:*"}, right) {
		require.Equal(t, 2, worked, "messages are not needed to acquire")
	}
	return late
}

// One key that a user may no longer touch is among many of a call, which Redis
// refuses as a whole.

// manyKeys are of many slots, and enough for a call of several, which is asked again in parts twice.
func manyKeys() (keys []string) {
	for i := range 30 {
		keys = append(keys, fmt.Sprint("ok:", i))
	}
	return keys
}

// queuedFor has one locker hold the keys, and another stand in their queues.
func queuedFor(t *testing.T, s locktest.Redis, locker, other locktest.Locker, keys []string) (held []*holdfast.Lease, waits []<-chan locktest.Acquired) {
	for _, key := range keys {
		held = append(held, locktest.Lock(t, other, locktest.Bounded(t), key))
		waits = append(waits, locktest.GoLock(locker, locktest.Bounded(t), key))
	}
	for _, key := range keys {
		locktest.Await(t, func() bool { return len(locktest.Queued(t, s, key)) == 1 })
	}
	return held, waits
}

// served requires that each waiter is served when the holder of its key unlocks, and not before.
func served(t *testing.T, held []*holdfast.Lease, waits []<-chan locktest.Acquired) {
	for i, l := range held {
		require.Empty(t, waits[i], l.Key())
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
		require.NoError(t, locktest.Got(t, waits[i]).Unlock(locktest.Bounded(t)))
	}
}

func forbid(t *testing.T, s locktest.Topology) {
	s.Do(t, "ACL", "SETUSER", "least", "resetkeys", "~ok:*", "~{ok:*", "~redisson_*", "~holdfast_*")
}

// The forbidden lease ends, as it cannot be renewed; all others go on.
func testForbiddenAmongLeases(t *testing.T, k locktest.Kind) {
	s := startLeast(t, k)
	locker := k.Open(t, s.Client(t, locktest.AsLeast), locktest.Options{Lease: 30 * time.Second})
	var leases []*holdfast.Lease
	for _, key := range append(manyKeys(), "forbidden") {
		leases = append(leases, locktest.Lock(t, locker, locktest.Bounded(t), key))
	}
	forbid(t, s)
	last := len(leases) - 1
	locktest.Within(t, leases[last].Done())
	require.ErrorIs(t, leases[last].Err(), holdfast.ErrLost)
	over := leases[last].Deadline()
	for _, l := range leases[:last] {
		require.NoError(t, l.Err(), l.Key())
		require.True(t, l.Deadline().After(over), l.Key())
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
	}
}

// A waiter for the forbidden key gets the error, when the outage has been too long; all others
// keep their places and are served.
func testForbiddenAmongWaiters(t *testing.T, k locktest.Kind) {
	s := startLeast(t, k)
	o := locktest.Options{Lease: locktest.Long, MaxOutage: ptr(5 * time.Second), WaiterTTL: 10 * time.Second, GrantLease: locktest.Long}
	locker, other := k.Open(t, s.Client(t, locktest.AsLeast), o), k.Open(t, s.Client(t), o)
	keys := append(manyKeys(), "forbidden")
	held, waits := queuedFor(t, s, locker, other, keys)
	forbid(t, s)
	last := len(keys) - 1
	err := locktest.Within(t, waits[last]).Err
	locktest.RequireSentinel(t, err, holdfast.ErrUnavailable, "NOPERM")
	served(t, held[:last], waits[:last])
}

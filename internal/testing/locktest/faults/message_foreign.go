package faults

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Any user with the right to publish can send messages on the channels of locks.

func init() {
	register("F12_ForgedGrantForAnAttempt", testForgedForAttempt, fairOnly)
	register("F12_ForgedGrantByAReaderOfTheQueue", testForgedByReader, fairOnly)
	register("F12_GrantMessageDuringUnlock", testGrantDuringUnlock, fairOnly)
	register("F12_FloodOfForeignMessages", testFlood, ofOneHolder|alone)
}

// foreign are messages that no script sends. Some look like the grant of a waiter of the
// client of owner: of one of its first thousand owners, from which it had no other.
func foreign(owner, held string) (all []string) {
	all = append(all, "", "0", "1", " ", "\x00", "\xff\xfe", "for", " for ", " for k", ":", ": for k", "a:b for k")
	client, _, _ := strings.Cut(owner, ":")
	grant := func(owner, rest string) { all = append(all, owner+rest+" for k") }
	for number := range 1000 {
		grant(fmt.Sprintf("%s:0%d", client, number), " 60000 0 0")
	}
	for _, owner := range []string{held, client, client + ":", client + ":0", client + ":0" + strings.Repeat("1", 30)} {
		for _, rest := range []string{"", " 60000 0 0", " 60000 1 2 03 04", " -1 0 0", " 60000 2 1", " 99999999999999999999 0 0"} {
			grant(owner, rest)
		}
	}
	return all
}

// on are the channels on which the waiter for key of an owner, if it is in a queue, listens.
func on(k locktest.Kind, key, owner string) []string {
	if owner == "" {
		return []string{k.Channel(key)}
	}
	return []string{k.Channel(key), locktest.InboxOf(key, owner), k.Channel(key) + ":" + owner}
}

// testFlood sends 10 000 messages in a second to the waiters of a key. Meanwhile the same
// lockers lock other keys, and wait for them.
func testFlood(t *testing.T, k locktest.Kind) {
	const messages, keys, rounds = 10_000, 8, 20
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long})
	before := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	waiting := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
	r.AwaitWaiters("k", 1)
	owner := r.queuedFirst("k")
	var flood []string
	for _, m := range foreign(owner, before.Owner()) {
		flood = append(flood, m, strings.Repeat("x", 1<<10))
	}
	goroutines, used := runtime.NumGoroutine(), memory()
	ctx, cancel := context.WithCancel(locktest.Bounded(t))
	defer cancel()
	var flooding, others sync.WaitGroup
	most := 0
	flooding.Go(func() {
		client, sent := r.Server.Client(t, readsMeanwhile), 0
		for sent < messages || ctx.Err() == nil {
			for some := range slices.Chunk(flood, messages/100) {
				for _, channel := range on(k, "k", owner) {
					r.publish(client, channel, some)
					sent += len(some)
				}
				most = max(most, runtime.NumGoroutine())
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	for i := range keys {
		others.Go(func() {
			for range rounds {
				key := fmt.Sprint("other", i)
				held := locktest.Lock(t, r.Other, locktest.Bounded(t), key)
				next := locktest.GoLock(r.Locker, locktest.Bounded(t), key)
				locktest.Await(t, func() bool { return k.Waiting(t, r.Server, key) == 1 || len(next) == 1 })
				require.NoError(t, locktest.Next(t, held, next).Unlock(locktest.Bounded(t)))
				time.Sleep(50 * time.Millisecond) // so that these take as long as the flood
			}
		})
	}
	others.Wait()
	cancel()
	flooding.Wait()
	require.Less(t, most, goroutines+100)
	require.Empty(t, waiting)
	require.NoError(t, locktest.Next(t, before, waiting).Unlock(locktest.Bounded(t)))
	require.Less(t, memory()-used, 4<<20)
	r.Tidy("k")
}

// readsMeanwhile has a client read replies while it still writes, as a pipe of the simulated network
// holds none.
func readsMeanwhile(o *rueidis.ClientOption) { o.AlwaysPipelining = true }

// publish sends messages to a channel, and to the shard channel of that name, in few round
// trips: the waits for the key end with the test's patience.
func (r *harness) publish(client rueidis.Client, channel string, messages []string) {
	r.T.Helper()
	verbs := []string{"PUBLISH"}
	if r.Kind.Cluster && !redistest.Before7() {
		verbs = append(verbs, "SPUBLISH")
	}
	for _, one := range locktest.Clients(client) {
		for _, verb := range verbs {
			var cmds rueidis.Commands
			for _, m := range messages {
				cmds = append(cmds, one.B().Arbitrary(verb).Keys(channel).Args(m).Build())
			}
			for _, reply := range one.DoMulti(locktest.Bounded(r.T), cmds...) {
				require.NoError(r.T, reply.Error())
			}
		}
	}
}

// An attempt has been granted the key, and its reply is under way, when a message says that
// its owner, which waits in no queue, has the key. It is not given up for that.
func testForgedForAttempt(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, WaiterTTL: time.Second})
	before, waiting := r.heldAndWanted("k")
	inbox := locktest.InboxOf("k", r.queuedFirst("k"))
	require.NoError(t, locktest.Next(t, before, waiting).Unlock(locktest.Bounded(t)))

	held := r.holdReplies("acquire")
	attempt := locktest.GoAcquire(func() (*holdfast.Lease, error) { return r.Locker.TryLock(locktest.Bounded(t), "k") }) // Lock would enter the queue
	locktest.Within(t, held)
	require.Equal(t, 1, locktest.Publish(t, r.Server, inbox, r.Owner("k")+" 60000 0 0 for k"), "the inbox outlasts its last waiter")
	next := r.OtherInQueue("k", 1)
	time.Sleep(100 * time.Millisecond) // no event tells that nothing is sent
	r.letGo()
	l := locktest.Got(t, attempt)
	r.trustedInRedis(l)
	require.Empty(t, next, "two holders")
	r.passesOn(l, next)
}

// A reader of the queue can send a message like that of a grant. It grants nothing to a
// waiter that confirms its grants.
func testForgedByReader(t *testing.T, k locktest.Kind) {
	for _, confirmed := range []bool{false, true} {
		r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, Confirmed: confirmed})
		before, waiting := r.heldAndWanted("k")
		owner := r.queuedFirst("k")
		require.Equal(t, 1, locktest.Publish(t, r.Server, locktest.InboxOf("k", owner), owner+" 60000 0 0 for k"))
		if !confirmed {
			locktest.Got(t, waiting) // as docs/acl.md says
			continue
		}
		locktest.Await(t, func() bool { now := r.queuedFirst("k"); return now != "" && now != owner }) // it has entered again
		require.Empty(t, waiting, "two holders")
		r.passesOn(before, waiting)
	}
}

// A message, forged or late, says that an owner has the key which is about to release it.
// This locker does not give that owner up: the release might come second, and seem a loss.
func testGrantDuringUnlock(t *testing.T, k locktest.Kind) {
	woken := make(chan struct{}, 10)
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long, Observer: &holdfast.Observer{
		Woken: func(holdfast.WokenEvent) { woken <- struct{}{} },
	}})
	before, waiting := r.heldAndWanted("k")
	inbox := locktest.InboxOf("k", r.queuedFirst("k"))
	l := locktest.Next(t, before, waiting)
	locktest.Within(t, woken)

	releasing, goOn, left := make(chan struct{}), make(chan struct{}), atomic.Int32{}
	r.Proxy.OnRequest(func(cmd []string) redistest.Verdict {
		switch locktest.Verb(cmd) {
		case "release":
			close(releasing)
			<-goOn
		case "leave", "give_up":
			left.Add(1)
		}
		return redistest.Pass
	})
	unlocked := locktest.Go(func() error { return l.Unlock(locktest.Bounded(t)) })
	locktest.Within(t, releasing)
	for range 2 { // the first is dealt with when the second is heard
		require.Equal(t, 1, locktest.Publish(t, r.Server, inbox, l.Owner()+" 60000 0 0 for k"), "the inbox outlasts its last waiter")
		locktest.Within(t, woken)
	}
	close(goOn)
	require.NoError(t, locktest.Within(t, unlocked))
	require.NoError(t, r.Locker.Close()) // whatever it had to send is sent
	require.Zero(t, left.Load())
}

// queuedFirst is the first owner in the queue of key, if there is one.
func (r *harness) queuedFirst(key string) string {
	r.T.Helper()
	if owners := locktest.Queued(r.T, r.Server, key); len(owners) > 0 {
		return owners[0]
	}
	return ""
}

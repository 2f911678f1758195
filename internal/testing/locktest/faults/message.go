package faults

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() {
	register("F11_SubscriberCut", func(t *testing.T, k locktest.Kind) {
		testSubscriberDropped(t, k, func(r *harness) { r.Server.Do(t, "CLIENT", "KILL", "TYPE", "pubsub") })
	}, ofOneHolder)
	register("F12_KeyDeletedWithoutMessage", testDeletedWithoutMessage, ofOneHolder)
	register("F12_ChannelForbidden", testChannelForbidden, ofOneHolder|realServers)
	register("F12_ChannelForbiddenAmongOthers", testMuteAmongOthers, fairOnly|realServers)
	register("F14_SlowSubscriberDropped", func(t *testing.T, k locktest.Kind) {
		testSubscriberDropped(t, k, func(r *harness) {
			r.Server.Do(t, "CONFIG", "SET", "client-output-buffer-limit", "pubsub 1kb 1kb 1")
			channel := k.Channel("key0")
			if k.Fair {
				channel = locktest.InboxOf("key0", locktest.Queued(t, r.Server, "key0")[0])
			}
			require.Equal(t, 1, locktest.Publish(t, r.Server, channel, string(make([]byte, 1<<20))))
		})
	}, ofOneHolder|realServers)
}

// messageKeys are several keys with several waiters each: all of them must look
// again.
var messageKeys = []string{"key0", "key1", "key2"}

// asleep returns when the locker, told to wait for the keys by begin, sleeps: it
// has subscribed and tried again, or entered the queue.
func (r *harness) asleep(begin func(), keys ...string) {
	r.T.Helper()
	last := 2
	if r.Kind.Fair {
		last = 1
	}
	again := make(chan struct{}, 100)
	tries := map[string]int{}
	var mu sync.Mutex
	first := r.Proxy.All[0]
	first.OnReply(func(cmd []string) redistest.Verdict {
		if locktest.Verb(cmd) == r.Kind.WaitVerb() {
			mu.Lock()
			defer mu.Unlock()
			for _, key := range keys { // a quorum asks for several with one call
				if !slices.Contains(cmd, key) {
					continue
				}
				if tries[key]++; tries[key] == last {
					again <- struct{}{}
				}
			}
		}
		return redistest.Pass
	})
	begin()
	for range keys {
		locktest.Within(r.T, again)
	}
	first.OnReply(nil)
	for _, key := range keys {
		r.AwaitWaiters(key, 1)
	}
}

// waiters begins a wait on each key, behind holds of the other client.
func (r *harness) waiters() (before []*holdfast.Lease, waiting []<-chan locktest.Acquired) {
	for _, key := range messageKeys {
		before = append(before, locktest.Lock(r.T, r.Other, locktest.Bounded(r.T), key))
	}
	r.asleep(func() {
		for _, key := range messageKeys {
			waiting = append(waiting, locktest.GoLock(r.Locker, locktest.Bounded(r.T), key))
		}
	}, messageKeys...)
	return before, waiting
}

// testSubscriberDropped has the server end the subscription, and all keys be
// released before there is a new one: the messages are lost, and all leases so
// long that only a look after the re-subscription helps.
func testSubscriberDropped(t *testing.T, k locktest.Kind, drop func(*harness)) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	before, waiting := r.waiters()
	back := r.holdRequests("subscribe")
	drop(r)
	locktest.Within(t, back)
	for _, l := range before {
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
	}
	r.letGo()
	for i, w := range waiting {
		require.NoError(t, locktest.Got(t, w).Unlock(locktest.Bounded(t)))
		r.Tidy(messageKeys[i])
	}
}

// The key vanishes without a word: the next look comes when the holder's lease, as it was seen,
// must be over, or within one lease of the waiting client, or with the next heartbeat.
func testDeletedWithoutMessage(t *testing.T, k locktest.Kind) {
	for _, lease := range []struct{ holder, waiter, shorter time.Duration }{
		{6 * time.Second, locktest.Long, 6 * time.Second}, // by its end, the waiter is asleep
		{locktest.Long, short, short},
	} {
		r := newHarness(t, k, locktest.Options{Lease: lease.waiter, WaiterTTL: time.Second})
		locktest.Lock(t, r.Other, locktest.Bounded(t), "k", holdfast.FixedLease(lease.holder))
		for _, s := range r.Server { // a node that is late would have the hold for good
			locktest.Await(t, func() bool { return locktest.Exists(t, s, "k") })
		}
		var waiting <-chan locktest.Acquired
		r.asleep(func() { waiting = locktest.GoLock(r.Locker, locktest.Bounded(t), "k") }, "k")
		deleted := time.Now()
		r.Server.Do(t, "DEL", "k")
		l := locktest.Got(t, waiting)
		require.Less(t, time.Since(deleted), lease.shorter+20*time.Second)
		r.passesOn(l)
	}
}

// mute makes a user that may neither hear nor publish messages, and has a client log in as it.
func mute(t *testing.T, s locktest.Topology) func(*rueidis.ClientOption) {
	s.Do(t, "ACL", "SETUSER", "nochannels", "on", "nopass", "~*", "+@all", "resetchannels")
	return func(o *rueidis.ClientOption) { o.Username = "nochannels" }
}

// The user may neither hear nor publish messages: releases succeed, and waiters
// look from time to time.
func testChannelForbidden(t *testing.T, k locktest.Kind) {
	s := k.Start(t)
	o, client := locktest.Options{Lease: 9 * time.Second}, mute(t, s)
	holder, waiter := k.Open(t, s.Client(t, client), o), k.Open(t, s.Client(t, client), o)
	l := locktest.Lock(t, holder, locktest.Bounded(t), "k")
	waiting := locktest.GoLock(waiter, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return mutterings(t, s) > 0 }) // it has tried to subscribe
	require.NoError(t, locktest.Next(t, l, waiting).Unlock(locktest.Bounded(t)))
	locktest.Await(t, func() bool { return !locktest.Exists(t, s, "k") }) // a quorum need not wait for all its nodes
}

// A locker without messages gets its turn, even if others want the key all the time and
// hand it to one another.
func testMuteAmongOthers(t *testing.T, k locktest.Kind) {
	s := k.Start(t)
	o := locktest.Options{Lease: locktest.Long, WaiterTTL: 2 * time.Second}
	noChannels := k.Open(t, s.Client(t, mute(t, s)), o)
	ctx, cancel := context.WithCancel(context.Background())
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	for range 3 { // two of them wait at every moment
		other := k.Open(t, s.Client(t), o)
		others.Go(func() {
			for ctx.Err() == nil {
				if l, err := other.Lock(ctx, "k"); err == nil {
					_ = l.Unlock(ctx)
				}
			}
		})
	}
	locktest.Await(t, func() bool { return len(locktest.Queued(t, s, "k")) == 2 })
	for range 2 {
		l := locktest.Got(t, locktest.GoLock(noChannels, locktest.Bounded(t), "k"))
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
	}
}

// mutterings is how many commands were refused for lack of a right.
func mutterings(t *testing.T, s locktest.Topology) int {
	return len(locktest.Must(s.Do(t, "ACL", "LOG").ToArray())(t))
}

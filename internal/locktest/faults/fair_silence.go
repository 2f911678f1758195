package faults

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What heartbeats have to do for clients that are silent for long, or may be.

func init() {
	registerFair("F3_HeartbeatsComeThoughSilenceMayBeLong", testHeartbeatsInTime)
	registerFair("F17_HeartbeatsOfManyKeysComeAtOnce", testManyHeartbeatsAtOnce)
	registerFair("F15_PlaceLostInALongSilence", testLostInSilence)
}

// Java drops a waiter with a score that has not moved for half a minute, however long our
// own clients may be silent.
func testHeartbeatsInTime(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, Stale: 10 * Long, FirstLease: 10 * Long})
	before := Lock(t, r.Other, Bounded(t), "k")
	waiting := r.InLine(Bounded(t), "k", 1)
	count := r.counting()
	Await(t, func() bool { return count("heartbeat") >= 2 })
	require.NoError(t, before.Unlock(Bounded(t)))
	require.NoError(t, Got(t, waiting).Unlock(Bounded(t)))
	r.Tidy("k")
}

// A client is cut off for so long that it counts as dead. Of its two waiters, the one
// that came later is dropped, as it entered first: the first heartbeat that is answered
// finds that out, though the other still has its place.
func testLostInSilence(t *testing.T, d Kind) {
	const stale = time.Second
	r := newHarness(t, d, Options{Lease: Long, FirstLease: Long, Stale: stale})
	other := d.Open(t, r.Server.Client(t), Options{Lease: Long, FirstLease: Long, Stale: Long})
	before := Lock(t, other, Bounded(t), "k")
	require.NoError(t, Lock(t, r.Locker, Bounded(t), "connected").Unlock(Bounded(t)))
	hook, held := Holding("acquire")
	r.Proxy.OnReply(hook)
	first := GoLock(r.Locker, Bounded(t), "k")
	Within(t, held)
	second := r.InLine(Bounded(t), "k", 1)
	between := GoLock(other, Bounded(t), "k")
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 2 })
	r.Proxy.OnReply(nil)
	r.Proxy.Release()
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 3 })
	place := Queued(t, r.Server, "k")[2]
	count := r.counting()
	Await(t, func() bool { return count("heartbeat") >= 2 }) // of the second at least all is known

	r.Proxy.Refuse(true)
	r.Proxy.Cut()
	time.Sleep(2 * stale) // no call under way is older than the silence
	require.NoError(t, before.Unlock(Bounded(t)))
	l := Got(t, between)
	require.Equal(t, []string{place}, Queued(t, r.Server, "k"))
	var answered atomic.Int64
	r.Proxy.OnReply(func(cmd []string) redistest.Verdict {
		if Verb(cmd) == "heartbeat" {
			answered.Add(1)
		}
		return redistest.Pass
	})
	r.Proxy.Refuse(false)
	Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 2 })
	require.Less(t, answered.Load(), int64(15), "not before the scores are moved on")
	require.NoError(t, l.Unlock(Bounded(t)))
	require.NoError(t, Got(t, first).Unlock(Bounded(t)))
	require.NoError(t, Got(t, second).Unlock(Bounded(t)))
	r.Tidy("k")
}

// Over a link that is so slow that calls one after another would be late, those for
// many keys are all under way at once.
func testManyHeartbeatsAtOnce(t *testing.T, d Kind) {
	const keys, stale = 120, 15 * time.Second
	r := newHarness(t, d, Options{Lease: Long, Stale: stale, FirstLease: Long})
	names := make(map[string]bool)
	for i := range keys {
		key := fmt.Sprint("key", i)
		names[key] = true
		Lock(t, r.Other, Bounded(t), key)
		GoLock(r.Locker, t.Context(), key)
	}
	for key := range names {
		Await(t, func() bool { return len(Queued(t, r.Server, key)) == 1 })
	}
	time.Sleep(stale / 8) // a waiter that has just entered needs no heartbeat
	var mu sync.Mutex
	heartbeatsSent := map[string]bool{}
	r.Proxy.OnReply(func(cmd []string) redistest.Verdict {
		if Verb(cmd) == "heartbeat" {
			return redistest.Hold
		}
		return redistest.Pass
	})
	began := make(chan struct{}, 1)
	r.Proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if Verb(cmd) == "heartbeat" {
			mu.Lock()
			defer mu.Unlock()
			for _, word := range cmd {
				if names[word] {
					heartbeatsSent[word] = true
				}
			}
			Poke(began)
		}
		return redistest.Pass
	})
	Within(t, began)
	first := time.Now()
	Await(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heartbeatsSent) == keys
	})
	require.Less(t, time.Since(first), 5*time.Second, "one waits for the answer to another, which may take as long")
	r.Proxy.OnReply(nil)
	r.Proxy.Release()
}

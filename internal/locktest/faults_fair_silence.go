package locktest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What heartbeats have to do for clients that are silent for long, or may be.

func init() {
	registerFair("F3_HeartbeatsComeThoughSilenceMayBeLong", testHeartbeatsInTime)
	registerFair("F17_HeartbeatsOfManyKeysComeAtOnce", testManyHeartbeatsAtOnce)
	registerFair("F15_PlaceLostInALongSilence", testLostInSilence)
}

// Java drops whoever has not moved on its score for half a minute, however long our
// own clients may be silent.
func testHeartbeatsInTime(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, Stale: 10 * long, FirstLease: 10 * long})
	before := lock(t, r.other, bounded(t), "k")
	waiting := r.inLine(bounded(t), "k", 1)
	count := r.counting()
	await(t, func() bool { return count("heartbeat") >= 2 })
	require.NoError(t, before.Unlock(bounded(t)))
	require.NoError(t, got(t, waiting).Unlock(bounded(t)))
	r.tidy("k")
}

// A client is cut off for so long that it counts as dead. Of its two waiters, the one
// that came later is dropped, as it entered first: the first heartbeat that is answered
// finds that out, though the other still has its place.
func testLostInSilence(t *testing.T, d Kind) {
	const stale = time.Second
	r := newFaultRig(t, d, Options{Lease: long, FirstLease: long, Stale: stale})
	other := d.Open(t, r.server.Client(t), Options{Lease: long, FirstLease: long, Stale: long})
	before := lock(t, other, bounded(t), "k")
	require.NoError(t, lock(t, r.locker, bounded(t), "connected").Unlock(bounded(t)))
	hook, held := holding("acquire")
	r.proxy.OnReply(hook)
	first := lockAside(r.locker, bounded(t), "k")
	within(t, held)
	second := r.inLine(bounded(t), "k", 1)
	between := lockAside(other, bounded(t), "k")
	await(t, func() bool { return len(queued(t, r.server, "k")) == 2 })
	r.proxy.OnReply(nil)
	r.proxy.Release()
	await(t, func() bool { return len(queued(t, r.server, "k")) == 3 })
	place := queued(t, r.server, "k")[2]
	count := r.counting()
	await(t, func() bool { return count("heartbeat") >= 2 }) // of the second at least all is known

	r.proxy.Refuse(true)
	r.proxy.Cut()
	time.Sleep(2 * stale) // no call under way is older than the silence
	require.NoError(t, before.Unlock(bounded(t)))
	l := got(t, between)
	require.Equal(t, []string{place}, queued(t, r.server, "k"))
	var answered atomic.Int64
	r.proxy.OnReply(func(cmd []string) redistest.Verdict {
		if verb(cmd) == "heartbeat" {
			answered.Add(1)
		}
		return redistest.Pass
	})
	r.proxy.Refuse(false)
	await(t, func() bool { return len(queued(t, r.server, "k")) == 2 })
	require.Less(t, answered.Load(), int64(15), "not before the scores are moved on")
	require.NoError(t, l.Unlock(bounded(t)))
	require.NoError(t, got(t, first).Unlock(bounded(t)))
	require.NoError(t, got(t, second).Unlock(bounded(t)))
	r.tidy("k")
}

// Over a link that is so slow that calls one after another would be late, those for
// many keys are all under way at once.
func testManyHeartbeatsAtOnce(t *testing.T, d Kind) {
	const keys, stale = 120, 15 * time.Second
	r := newFaultRig(t, d, Options{Lease: long, Stale: stale, FirstLease: long})
	names := make(map[string]bool)
	for i := range keys {
		key := fmt.Sprint("key", i)
		names[key] = true
		lock(t, r.other, bounded(t), key)
		lockAside(r.locker, t.Context(), key)
	}
	for key := range names {
		await(t, func() bool { return len(queued(t, r.server, key)) == 1 })
	}
	time.Sleep(stale / 8) // who has just entered needs no heartbeat
	var mu sync.Mutex
	heartbeatsSent := map[string]bool{}
	r.proxy.OnReply(func(cmd []string) redistest.Verdict {
		if verb(cmd) == "heartbeat" {
			return redistest.Hold
		}
		return redistest.Pass
	})
	began := make(chan struct{}, 1)
	r.proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if verb(cmd) == "heartbeat" {
			mu.Lock()
			defer mu.Unlock()
			for _, word := range cmd {
				if names[word] {
					heartbeatsSent[word] = true
				}
			}
			poke(began)
		}
		return redistest.Pass
	})
	within(t, began)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heartbeatsSent) == keys
	}, 3*time.Second, time.Millisecond, "one waits for the answer to another, which may take 5 s")
	r.proxy.OnReply(nil)
	r.proxy.Release()
}

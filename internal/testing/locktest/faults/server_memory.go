package faults

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() {
	register("F20_KilledBackEmpty", func(t *testing.T, k locktest.Kind) {
		testForgotten(t, k, short, func(s locktest.Topology) { s.Restart() })
	})
	register("F21_KilledBackWithItsMemory", testBackWithMemory, realServers)
	register("F24_Flushed", func(t *testing.T, k locktest.Kind) {
		testForgotten(t, k, short, func(s locktest.Topology) { s.Do(t, "FLUSHALL") })
	})
	register("F24_KeyDeleted", func(t *testing.T, k locktest.Kind) {
		// Longer than a key is awaited to be gone: one that was made again is found.
		testForgotten(t, k, short, func(s locktest.Topology) { s.Do(t, "DEL", "k") })
	})
	register("F31_Evicted", func(t *testing.T, k locktest.Kind) { testForgotten(t, k, short, evict(t)) }, realServers)
	register("F22_PowerLost", func(t *testing.T, k locktest.Kind) { testForgotten(t, k, short, losePower(t), writing...) }, realServers)
	register("F22_OneNodeLosesPower", func(t *testing.T, k locktest.Kind) {
		testOneForgets(t, k, true, func(s locktest.Server) { losePower(t)(locktest.Topology{s}) }, writing...)
	}, severalNodes|realServers)
	register("F23_ScriptFlush", testScriptFlush)
	register("F23_ScriptFlushCostsARoundTrip", testScriptFlushCost)
	register("F29_RenewedWhenTheScriptHasEnded", testBusyShort, realServers)
	register("F30_HeldLocksLiveOn", testMemoryHeld, realServers, ofLocks)
}

const short = 30 * time.Second // a lease of which a test awaits the renewal

// evict has Redis throw out whatever has an expiry.
func evict(t *testing.T) func(locktest.Topology) {
	return func(s locktest.Topology) {
		s.Do(t, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
		s.Do(t, "CONFIG", "SET", "maxmemory", "1")
		require.False(t, locktest.Exists(t, s, "k"))
		s.Do(t, "CONFIG", "SET", "maxmemory", "0")
		s.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction") // a quorum's nodes have no vote with another
	}
}

// testForgotten makes Redis lose the lock. The holder learns of it at the next renewal, and
// nothing brings the lock back. A waiter elsewhere gets it, with a larger fence, and keeps
// it.
func testForgotten(t *testing.T, k locktest.Kind, lease time.Duration, forget func(locktest.Topology), args ...string) {
	s := k.Start(t, args...)
	locker := k.Open(t, s.Client(t), locktest.Options{Lease: lease, Fencing: true, MaxLease: lease})
	other := k.Open(t, s.Client(t), locktest.Options{Lease: lease, Fencing: true, MaxLease: lease})
	l := locktest.Lock(t, locker, locktest.Bounded(t), "k")
	inside := locktest.Lock(t, locker, l.Bind(locktest.Bounded(t)), "k")
	bound := l.Bind(locktest.Bounded(t))

	forget(s)
	<-l.Done()
	require.True(t, time.Now().Before(l.Deadline()), "told by a renewal")
	for _, e := range []*holdfast.Lease{l, inside} {
		require.ErrorIs(t, e.Err(), holdfast.ErrLost)
		require.ErrorIs(t, e.Err(), watchdog.ErrNotOurs)
	}
	<-bound.Done()
	locktest.Gone(t, s, "k") // and no renewal has made it again
	locktest.RequireSentinel(t, locktest.ErrOf(locker.Lock(l.Bind(locktest.Bounded(t)), "k")), holdfast.ErrLost)
	locktest.Gone(t, s, "k") // and no nested call has made it again

	now := locktest.Lock(t, other, locktest.Bounded(t), "k")
	k.Grown(t, l.Fence(), now.Fence())
	locktest.RequireSentinel(t, inside.Unlock(locktest.Bounded(t)), holdfast.ErrLost)
	locktest.RequireSentinel(t, l.Unlock(locktest.Bounded(t)), holdfast.ErrLost)
	var held holdfast.Status
	locktest.Await(t, func() bool {
		var err error
		held, err = other.Inspect(locktest.Bounded(t), "k")
		return err == nil
	})
	require.Equal(t, now.Owner(), held.Owner)
	require.Equal(t, 1, held.Entries)
	require.NoError(t, now.Unlock(locktest.Bounded(t)))
}

// A lock that Redis remembers lives on as if nothing had been.
func testBackWithMemory(t *testing.T, k locktest.Kind) {
	const lease = 30 * time.Second
	s := k.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	// With its guard, a quorum does not trust a node's memory.
	locker := k.Open(t, s.Client(t), locktest.Options{Lease: lease, Fencing: true, Unguarded: true})
	other := k.Open(t, s.Client(t), locktest.Options{Lease: lease, Fencing: true, Unguarded: true})
	l := locktest.Lock(t, locker, locktest.Bounded(t), "k")
	inside := locktest.Lock(t, locker, l.Bind(locktest.Bounded(t)), "k")
	s.Restart()

	var held holdfast.Status
	locktest.Await(t, func() bool { // the first call finds its connection cut
		var err error
		held, err = other.Inspect(locktest.Bounded(t), "k")
		return err == nil
	})
	require.Equal(t, l.Owner(), held.Owner)
	require.Equal(t, 2, held.Entries)
	locktest.Renewed(t, l)
	waiting := locktest.GoLock(other, locktest.Bounded(t), "k")
	require.NoError(t, inside.Unlock(locktest.Bounded(t)))
	next := locktest.Next(t, l, waiting)
	k.Grown(t, l.Fence(), next.Fence())
	require.NoError(t, next.Unlock(locktest.Bounded(t)))
}

// writing are the arguments of a server that writes all it does to a file.
var writing = []string{"--appendonly", "yes", "--appendfsync", "always"}

// losePower ends a server and starts it again on a file that lacks the end, from the
// middle of the last hold of "k" on: what came before, such as the marker of a
// quorum's node, is remembered.
func losePower(t *testing.T) func(locktest.Topology) {
	return func(f locktest.Topology) {
		f.Each(func(s locktest.Server) {
			s.Kill()
			files := locktest.Must(filepath.Glob(filepath.Join(locktest.Real(s).Dir(), "appendonlydir", "*.incr.aof")))(t)
			if len(files) == 0 { // before Redis 7
				files = []string{filepath.Join(locktest.Real(s).Dir(), "appendonly.aof")}
			}
			require.Len(t, files, 1)
			all := locktest.Must(os.ReadFile(files[0]))(t)
			hold := bytes.Index(bytes.ToLower(all), []byte("\r\nhset\r\n$1\r\nk\r\n"))
			if hold < 0 {
				hold = bytes.Index(bytes.ToLower(all), []byte("\r\nhincrby\r\n$1\r\nk\r\n"))
			}
			if hold < 0 {
				hold = bytes.Index(bytes.ToLower(all), []byte("\r\nzadd\r\n$1\r\nk\r\n"))
			}
			require.Positive(t, hold, "%q", all)
			require.NoError(t, os.Truncate(files[0], int64(hold+len("\r\nhset"))))
			s.Restart()
		})
	}
}

// Redis forgets the scripts again and again, without any effect.
func testScriptFlush(t *testing.T, k locktest.Kind) {
	s := k.Start(t)
	locker := k.Open(t, s.Client(t), locktest.Options{Lease: short, Fencing: true})
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		tick, flushed := time.NewTicker(10*time.Millisecond), 0
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := s.TryDo("SCRIPT", "FLUSH"); err == nil {
					flushed++
				}
			case <-stop:
				stopped <- flushed
				return
			}
		}
	}()
	l := locktest.Lock(t, locker, locktest.Bounded(t), "renewed")
	until := l.Deadline()
	for cycles := 0; cycles < 100 || !l.Deadline().After(until); cycles++ {
		outer := locktest.Lock(t, locker, locktest.Bounded(t), "k")
		require.NoError(t, locktest.Lock(t, locker, outer.Bind(locktest.Bounded(t)), "k").Unlock(locktest.Bounded(t)))
		require.NoError(t, locktest.ErrOf(locker.Inspect(locktest.Bounded(t), "k")))
		require.NoError(t, outer.Unlock(locktest.Bounded(t)))
		time.Sleep(30 * time.Millisecond)
	}
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	close(stop)
	require.GreaterOrEqual(t, <-stopped, 10)
}

func testScriptFlushCost(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	require.NoError(t, locktest.Cycle(r.Locker, locktest.Bounded(t), "warm"))
	r.Server.Do(t, "SCRIPT", "FLUSH")
	var mu sync.Mutex
	var sent []string
	r.Proxy.All[0].OnRequest(func(cmd []string) redistest.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if locktest.Is("acquire", "release", "check")(cmd) {
			sent = append(sent, cmd[0]+" "+locktest.Verb(cmd))
		}
		return redistest.Pass
	})
	for range 2 {
		require.NoError(t, locktest.Cycle(r.Locker, locktest.Bounded(t), "k"))
	}
	want := []string{"EVALSHA acquire", "EVAL acquire", "EVALSHA release", "EVAL release", "EVALSHA acquire", "EVALSHA release"}
	broughtBack := func(s string) bool { return s == "EVAL release" }
	if k.Nodes > 0 {
		// What ends the first round, by the script that releases, has brought that back, most often.
		want = slices.DeleteFunc(want, broughtBack)
		if !redistest.Before7() { // with the restart guard, the text belongs to a boot of a node, which may be another: it is looked at first
			want = slices.Replace(want, 1, 2, "EVAL check", "EVALSHA acquire")
		}
	}
	if k.Nodes > 1 { // of which those that come late are not asked again
		mu.Lock()
		defer mu.Unlock()
		for _, text := range []string{"EVAL acquire", "EVAL check"} {
			count := func(all []string) int { return strings.Count(strings.Join(all, ","), text) }
			require.LessOrEqual(t, count(sent), count(want), "sent: %v", sent)
		}
		return
	}
	locktest.Await(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		if k.Nodes > 0 {
			sent = slices.DeleteFunc(sent, broughtBack)
		}
		return slices.Equal(want, sent)
	}, "sent: %v", &sent)
}

// A script blocks Redis for a part of a lease: it is renewed when that is over.
func testBusyShort(t *testing.T, k locktest.Kind) {
	s := k.Start(t, "--busy-reply-threshold", "20")
	locker := k.Open(t, s.Client(t), locktest.Options{Lease: 45 * time.Second})
	l := locktest.Lock(t, locker, locktest.Bounded(t), "k")
	beginBusy(t, s)
	until := l.Deadline()
	for time.Until(until) > 26*time.Second { // a renewal is due meanwhile
		_, err := locker.TryLock(locktest.Bounded(t), "other")
		require.True(t, errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrUnknown), err) // the latter if no answer came in time
	}
	require.Equal(t, until, l.Deadline())
	s.Do(t, "SCRIPT", "KILL")
	locktest.Await(t, func() bool { return l.Deadline().After(until) })
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
}

// Out of memory, locks are renewed and released, nested ones too; only counting
// their entries has to wait.
func testMemoryHeld(t *testing.T, k locktest.Kind) {
	s := k.Start(t)
	locker := k.Open(t, s.Client(t), locktest.Options{Lease: 30 * time.Second, Fencing: true, MaxOutage: ptr(300 * time.Millisecond)})
	l := locktest.Lock(t, locker, locktest.Bounded(t), "k")
	inside := locktest.Lock(t, locker, l.Bind(locktest.Bounded(t)), "k")
	plain := locktest.Lock(t, locker, locktest.Bounded(t), "plain")
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")

	locktest.Renewed(t, l)
	for _, call := range []func() (*holdfast.Lease, error){
		func() (*holdfast.Lease, error) { return locker.TryLock(l.Bind(locktest.Bounded(t)), "k") },
		func() (*holdfast.Lease, error) { return locker.Lock(l.Bind(locktest.Bounded(t)), "k") },
		func() (*holdfast.Lease, error) { return locker.Lock(locktest.Bounded(t), "new") },
	} {
		_, err := call()
		for tries := 1; tries < 5 && errors.Is(err, holdfast.ErrUnknown); tries++ { // no answer in time
			_, err = call()
		}
		locktest.RequireSentinel(t, err, holdfast.ErrUnavailable, "OOM")
	}
	locktest.RequireSentinel(t, inside.Unlock(locktest.Bounded(t)), holdfast.ErrUnknown)
	require.ErrorIs(t, inside.Err(), holdfast.ErrReleased)
	require.NoError(t, l.Err())
	refused := func() int { return locktest.Stat(t, s[0], "stats", "total_error_replies:") }
	tried := refused()
	locktest.Await(t, func() bool { return refused() > tried+3 }, "it is tried again")
	s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	locktest.Await(t, func() bool {
		held, err := locker.Inspect(locktest.Bounded(t), "k")
		return err == nil && held.Entries == 1
	}, "the entry is counted out later")
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	require.NoError(t, plain.Unlock(locktest.Bounded(t)))
	for _, key := range []string{"k", "plain", "new"} {
		locktest.Gone(t, s, key)
	}
	immortal(t, s)
}

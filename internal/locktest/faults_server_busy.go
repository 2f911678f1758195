package locktest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() {
	register("F23_ScriptFlush", testScriptFlush)
	register("F23_ScriptFlushCostsARoundTrip", testScriptFlushCost)
	register("F29_RenewedWhenTheScriptHasEnded", testBusyShort)
	register("F29_LostWhenTheScriptDoesNotEnd", testBusyLong)
	register("F30_HeldLocksLiveOn", testMemoryHeld)
}

// Scripts are forgotten again and again, and nobody notices.
func testScriptFlush(t *testing.T, d Kind) {
	s := d.start(t)
	const lease = 3 * time.Second
	locker := d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true})
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
	l := lock(t, locker, bounded(t), "renewed")
	until := l.Deadline()
	for cycles := 0; cycles < 200 || !l.Deadline().After(until); cycles++ {
		outer := lock(t, locker, bounded(t), "k")
		require.NoError(t, lock(t, locker, outer.Bind(bounded(t)), "k").Unlock(bounded(t)))
		_, err := locker.Inspect(bounded(t), "k")
		require.NoError(t, err)
		require.NoError(t, outer.Unlock(bounded(t)))
	}
	require.NoError(t, l.Unlock(bounded(t)))
	close(stop)
	require.GreaterOrEqual(t, <-stopped, 10)
}

func testScriptFlushCost(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long})
	require.NoError(t, lock(t, r.locker, bounded(t), "warm").Unlock(bounded(t)))
	r.server.Do(t, "SCRIPT", "FLUSH")
	var mu sync.Mutex
	var sent []string
	r.proxy.all[0].OnRequest(func(cmd []string) redistest.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if is("acquire", "release", "check")(cmd) {
			sent = append(sent, cmd[0]+" "+verb(cmd))
		}
		return redistest.Pass
	})
	for range 2 {
		require.NoError(t, lock(t, r.locker, bounded(t), "k").Unlock(bounded(t)))
	}
	want := []string{"EVALSHA acquire", "EVAL acquire", "EVALSHA release", "EVAL release", "EVALSHA acquire", "EVALSHA release"}
	if d.Nodes > 0 { // the text belongs to a boot of a node, which may be another: it is looked at first
		// And what ends the first round, by the script that releases, has brought that back, most often.
		want = []string{"EVALSHA acquire", "EVAL look", "EVALSHA acquire", "EVALSHA release", "EVALSHA acquire", "EVALSHA release"}
	}
	if d.Nodes > 1 { // of which those that come late are not asked again
		return
	}
	await(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		if d.Nodes > 0 {
			sent = slices.DeleteFunc(sent, func(s string) bool { return s == "EVAL release" })
		}
		return slices.Equal(want, sent)
	}, "sent: %v", &sent)
}

// A script blocks Redis for a part of a lease: it is renewed when that is over.
func testBusyShort(t *testing.T, d Kind) {
	s := d.start(t, "--busy-reply-threshold", "20")
	locker := d.Open(t, s.Client(t), Options{Lease: 3 * time.Second})
	l := lock(t, locker, bounded(t), "k")
	beginBusy(t, s)
	seen, until := time.Now(), l.Deadline()
	for time.Since(seen) < 1500*time.Millisecond { // a renewal is due meanwhile
		_, err := locker.TryLock(bounded(t), "other")
		require.True(t, errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrUnknown), err) // the latter if no answer came in time
	}
	require.Equal(t, until, l.Deadline())
	s.Do(t, "SCRIPT", "KILL")
	await(t, func() bool { return l.Deadline().After(until) })
	require.NoError(t, l.Unlock(bounded(t)))
}

// A script blocks Redis for longer: the lease ends at its deadline, not before.
func testBusyLong(t *testing.T, d Kind) {
	s := d.start(t, "--busy-reply-threshold", "20")
	locker := d.Open(t, s.Client(t), Options{Lease: time.Second})
	l := lock(t, locker, bounded(t), "k")
	beginBusy(t, s)
	<-l.Done()
	require.False(t, time.Now().Before(l.Deadline()))
	require.ErrorIs(t, l.Err(), watchdog.ErrDeadline)
	requireSentinel(t, l.Unlock(bounded(t)), holdfast.ErrLost)
}

// Out of memory, locks are renewed and released, nested ones too; only counting
// their entries has to wait.
func testMemoryHeld(t *testing.T, d Kind) {
	s := d.start(t)
	locker := d.Open(t, s.Client(t), Options{Lease: 2 * time.Second, Fencing: true, MaxOutage: ptr(300 * time.Millisecond)})
	l := lock(t, locker, bounded(t), "k")
	inside := lock(t, locker, l.Bind(bounded(t)), "k")
	plain := lock(t, locker, bounded(t), "plain")
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")

	until := l.Deadline()
	await(t, func() bool { return l.Deadline().After(until) })
	for _, call := range []func() (*holdfast.Lease, error){
		func() (*holdfast.Lease, error) { return locker.TryLock(l.Bind(bounded(t)), "k") },
		func() (*holdfast.Lease, error) { return locker.Lock(l.Bind(bounded(t)), "k") },
		func() (*holdfast.Lease, error) { return locker.Lock(bounded(t), "new") },
	} {
		_, err := call()
		requireSentinel(t, err, holdfast.ErrUnavailable)
		require.ErrorContains(t, err, "OOM")
	}
	requireSentinel(t, inside.Unlock(bounded(t)), holdfast.ErrUnknown)
	require.ErrorIs(t, inside.Err(), holdfast.ErrReleased)
	require.NoError(t, l.Err())
	tried := refusals(t, s, "OOM")
	await(t, func() bool { return refusals(t, s, "OOM") > tried+3 }, "it is tried again")
	s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	await(t, func() bool {
		held, err := locker.Inspect(bounded(t), "k")
		return err == nil && held.Entries == 1
	}, "the entry is counted out later")
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	require.NoError(t, l.Unlock(bounded(t)))
	require.NoError(t, plain.Unlock(bounded(t)))
	for _, key := range []string{"k", "plain", "new"} {
		gone(t, s, key)
	}
	immortal(t, s)
}

// refusals is how often Redis has answered with that error.
func refusals(t *testing.T, s fleet, code string) int {
	m := s.Do(t, "INFO", "errorstats")
	text, err := m.ToString()
	require.NoError(t, err)
	_, count, _ := strings.Cut(text, "errorstat_"+code+":count=")
	n, err := strconv.Atoi(strings.TrimSpace(strings.Split(count, "\r\n")[0]))
	require.NoError(t, err)
	return n
}

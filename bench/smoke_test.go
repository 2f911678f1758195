package main

import (
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

func needServer(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("redis-server is not on the PATH")
	}
	t.Skip("redis-server is not on the PATH; install it to run this test")
}

// Every workload runs, small, and fills every line of its table. The rival is
// left out where it would have to wait: it got stuck there at times.
func TestWorkloads(t *testing.T) {
	needServer(t)
	for _, w := range []workload{
		uncontended(8),
		hot(8, 0),
		hot(8, 50*time.Microsecond),
		processes(2, 2, 0),
		processes(2, 2, time.Millisecond),
		oneHot(3, 2, 4),
		waiting(50),
		held(300, 1500*time.Millisecond),
		fairUncontended(8),
		handover(2, 2, target{}, target{}),
		handover(1, 4, target{}, target{}),
		queues(5, 20),
		fairWaiting(50),
		quorumUncontended(8, target{}),
		far(),
		quorumHeld(300, 1500*time.Millisecond),
	} {
		t.Run(w.name, func(t *testing.T) {
			waits := !slices.Contains([]string{"uncontended/8", "held/300", "quorum/uncontended 8"}, w.name)
			if waits {
				w.subjects = slices.DeleteFunc(w.subjects, func(s subject) bool { return s.rival })
			}
			m, err := w.measure(1, 50*time.Millisecond, io.Discard)
			require.NoError(t, err)
			require.Empty(t, m.Notes)
			for _, f := range w.figures {
				if !waits || !strings.Contains(f.name, rueidisName) {
					require.False(t, math.IsNaN(f.value(m.Rounds[0])), f.name)
				}
			}
		})
	}
}

func TestWorkloadNamesDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for _, w := range workloads() {
		require.False(t, seen[w.name], w.name)
		seen[w.name] = true
	}
}

// An uncontended cycle is two calls and nothing else, commands within scripts
// included.
func TestTwoCallsPerCycle(t *testing.T) {
	needServer(t)
	s, err := startServer()
	require.NoError(t, err)
	defer s.stop()
	for _, name := range []string{holdfastName, floorName} {
		l, err := libraries[name](s.addr, usualLease)
		require.NoError(t, err)
		defer l.close()
		cycle := l.cycle("key")
		require.NoError(t, cycle(func() {}))
		executed, err := s.callsDuring(func() error { return cycle(func() {}) })
		require.NoError(t, err)
		for _, mine := range []string{"info", "ping"} {
			delete(executed, mine)
		}
		maps.DeleteFunc(executed, func(_ string, n int) bool { return n == 0 })
		require.Equal(t, calls{"evalsha": 2, "exists": 1, "hset": 1, "pexpire": 1, "hdel": 1, "publish": 1}, executed, name)
	}
}

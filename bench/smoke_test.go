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
	spentSoFar = func() processors { return processors{} } // a busy machine is no reason to do all work three times
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

// needRival skips a test of a rival whose programs are not here; with RIVALS=1 it fails.
// Redisson needs that, too, as Maven loads it.
func needRival(t *testing.T, name string) {
	t.Helper()
	need := needs(name)
	if need == nil {
		return
	}
	err := need()
	_, java := redissonLocks[name]
	switch all := os.Getenv("RIVALS") == "1"; {
	case all:
		require.NoError(t, err)
	case java:
		t.Skip("make test-rivals runs it with Redisson, which Maven loads and builds")
	case err != nil:
		t.Skip(err)
	}
}

// Every workload runs, small, and fills every line of its table. Rivals are left
// out where they would have to wait: one of them got stuck there at times.
func TestWorkloads(t *testing.T) {
	needServer(t)
	for _, w := range append(recoveries(),
		sale(),
		uncontended(8),
		hot(8, 0),
		hot(8, 50*time.Microsecond),
		processes(2, 2, 0),
		processes(2, 2, time.Millisecond),
		oneHot(3, 2, 4),
		refused(8),
		waiting(50),
		held(300, 1500*time.Millisecond),
		fairUncontended(8),
		handover(2, 2, target{}, target{}),
		handover(1, 4, target{}, target{}),
		queues(5, 20),
		fairWaiting(50),
		quorumUncontended(8, target{}),
		far(),
		quorumHeld(300, 3*time.Second),
	) {
		t.Run(w.name, func(t *testing.T) {
			waits := !slices.Contains([]string{"uncontended/8", "try-lock refused/8", "held/300", "quorum/uncontended 8", "quorum/2ms"}, w.name)
			w.subjects = slices.DeleteFunc(w.subjects, func(s subject) bool {
				return s.needs != nil || waits && s.rival || s.name == rueidisName && w.name != "held/300"
			})
			var unknown []string
			for d := 50 * time.Millisecond; d < 10*time.Second; d *= 10 { // a busy machine may get nothing done in the first
				m, err := w.measure(1, d, newProgress(io.Discard, nil, 1))
				require.NoError(t, err)
				require.Empty(t, m.Notes)
				if unknown = unknownOf(w, m.Rounds[0]); len(unknown) == 0 {
					break
				}
			}
			require.Empty(t, unknown)
		})
	}
}

// unknownOf are the figures that a round should tell and does not.
func unknownOf(w workload, r round) (names []string) {
	for _, f := range w.figures {
		if !tellsOfAbsent(f, w) && math.IsNaN(f.value(r)) {
			names = append(names, f.name)
		}
	}
	return names
}

// tellsOfAbsent says whether a figure is of a rival that is left out.
func tellsOfAbsent(f figure, w workload) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(w.subjects, func(s subject) bool { return s.name == name })
	}
	if strings.Contains(f.name, "rival") {
		return !slices.ContainsFunc(w.subjects, func(s subject) bool { return s.rival })
	}
	return slices.ContainsFunc(slices.Concat(rivals(), fifoRivals()), func(name string) bool {
		return strings.Contains(f.name, name) && !has(name)
	})
}

// A rival does the work that ours do, on the server that it needs.
func TestRivals(t *testing.T) {
	needServer(t)
	defer stopStores()
	defer stopAgents()
	defer func(d time.Duration) { javaWarm = d }(javaWarm)
	javaWarm = 100 * time.Millisecond
	for _, name := range []string{
		rueidisName, redsyncName, redislockName, etcdName, zookeeperName,
		redissonName, redissonFairName, redissonSpinName,
	} {
		t.Run(name, func(t *testing.T) {
			needRival(t, name)
			does := map[string]subject{
				"own keys":  crew{4}.subject(name, name, work{}),
				"one key":   crew{2}.subject(name, name, work{hot: true, section: time.Millisecond}),
				"processes": crew{1, 1}.subject(name, name, work{hot: true}),
			}
			for of, s := range does {
				w := workload{name: of, subjects: []subject{s}}
				m, err := w.measure(1, 50*time.Millisecond, newProgress(io.Discard, nil, 1))
				require.NoError(t, err)
				if name == rueidisName && len(m.Notes) > 0 {
					require.Contains(t, m.Notes[0], errStuck.Error(), of) // as happens on a busy machine
					continue
				}
				require.Empty(t, m.Notes, of)
				require.Positive(t, m.Rounds[0][name]["lock max µs"], of)
			}
		})
	}
}

// Redisson does every kind of work, in processes that are replaced if they end.
func TestRedisson(t *testing.T) {
	needServer(t)
	needRival(t, redissonName)
	defer stopAgents()
	defer func(d time.Duration) { javaWarm = d }(javaWarm)
	javaWarm = 100 * time.Millisecond
	first := true
	for _, w := range append(recoveries(), sale(), refused(8), waiting(50), held(300, 1500*time.Millisecond), fairWaiting(50)) {
		w.subjects = slices.DeleteFunc(w.subjects, func(s subject) bool {
			_, java := redissonLocks[s.name]
			return !java
		})
		m, err := w.measure(1, 50*time.Millisecond, newProgress(io.Discard, nil, 1))
		require.NoError(t, err)
		require.Empty(t, m.Notes, w.name)
		for _, s := range w.subjects {
			require.NotEmpty(t, m.Rounds[0][s.name], w.name)
		}
		if first {
			first = false
			require.NoError(t, agents[0].kill())
			<-agents[0].done
		}
	}
}

// Rivals with servers of their own do every kind of work, too.
func TestOwnServers(t *testing.T) {
	needServer(t)
	defer stopStores()
	for _, w := range []workload{recoveries()[0], sale(), waiting(20)} {
		for _, name := range []string{etcdName, zookeeperName} {
			t.Run(w.name+" "+name, func(t *testing.T) {
				needRival(t, name)
				w := w
				w.subjects = slices.DeleteFunc(slices.Clone(w.subjects), func(s subject) bool { return s.name != name })
				m, err := w.measure(1, 50*time.Millisecond, newProgress(io.Discard, nil, 1))
				require.NoError(t, err)
				require.Empty(t, m.Notes)
				require.NotEmpty(t, m.Rounds[0][name])
			})
		}
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

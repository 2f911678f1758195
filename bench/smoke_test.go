package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/bench/report"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) {
	if runAgent() {
		return
	}
	spentSoFar = func() processors { return processors{} } // a busy machine is no reason to do all work three times
	javaWarm = 100 * time.Millisecond                      // what is measured here need not be quick
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		removeFiles()
		os.Exit(status)
	}))
}

func needServer(t testing.TB) {
	t.Helper()
	err := needProgram("redis-server", "redis-server")
	if os.Getenv("CI") == "true" {
		require.NoError(t, err)
	}
	if err != nil {
		t.Skip(err)
	}
}

// emptyServer starts a Redis for a test.
func emptyServer(t *testing.T) *deployment {
	t.Helper()
	needServer(t)
	d := redistest.Must(deploy(independent(1)))(t)
	t.Cleanup(d.stop)
	return d
}

// needRival skips a test of a rival under -short, or if that needs more than redis-server, unless RIVALS=1 says that all
// is here.
func needRival(t *testing.T, name string) {
	t.Helper()
	need := libraries[name].absent
	switch {
	case os.Getenv("RIVALS") != "1" && (testing.Short() || need != nil):
		t.Skip("make test-rivals runs it")
	case need != nil:
		require.NoError(t, need())
	}
}

// Every workload runs, small, and has all figures that its targets need. Rivals are left out
// where they would have to wait, as one of them got stuck there at times.
func TestWorkloads(t *testing.T) {
	needServer(t)
	for _, group := range []struct {
		leftOut   func(subject) bool
		workloads []workload
	}{
		{func(s subject) bool { return report.IsRival(s.library) }, []workload{
			holderKilled.workload("holdfast", "fair"), connectionsCut.workload("holdfast", "fair"), redisRestarted.workload("holdfast", "fair"),
			leaderKilled.workload("holdfast", "fair"), leaderResigns.workload("holdfast", "fair"), sale("holdfast"), hot(8, 0), hot(8, 50*time.Microsecond), processes(2, 2, 0), processes(2, 2, time.Millisecond),
			readers(50, 1, 8, 0), readers(50, 2, 2, time.Millisecond), permits(2, 1, 8, time.Millisecond), permits(2, 2, 2, 0),
			oneHot(3, 2, 4), waiting("waiting/50", 50, 1, "holdfast"),
			fairUncontended(8), grants(2, 2), grants(1, 4), queues(6, 20), waiting("fair/waiting 50", 50, 1, "fair"),
			held("quorum/held 300", 300, 9*time.Second, quorum, "multilock", single+" and node"),
			deployed("sentinel", startSentinels, processes(2, 2, 0), "holdfast", "holdfast, 1 replica", "fair"),
		}},
		{func(s subject) bool { return s.name == "rueidislock" }, []workload{
			uncontended(8), tryLock(8), quorumUncontended(8), far(), deployed("cluster", startCluster, uncontended(8), deployable...),
		}},
		{func(subject) bool { return false }, []workload{held("held/300", 300, 9*time.Second, nil, "holdfast", single, "rueidislock")}},
	} {
		for _, w := range group.workloads {
			t.Run(w.name, func(t *testing.T) {
				w.subjects = slices.DeleteFunc(w.subjects, func(s subject) bool { return libraries[s.library].absent != nil || group.leftOut(s) })
				var unknown []string
				for d := 50 * time.Millisecond; d < 10*time.Second; d *= 10 { // a busy machine may get nothing done in the first
					m, err := w.measure(1, d, io.Discard)
					if err != nil && !errors.Is(err, errBroken) && d < time.Second {
						continue // a holder that stands still loses its lease, which says nothing of its lock
					}
					require.NoError(t, err)
					require.Empty(t, m.Notes)
					if unknown = m.Unknown(); len(unknown) == 0 {
						break
					}
				}
				require.Empty(t, unknown)
			})
		}
	}
}

// A rival does the work that ours do, on the server that it needs.
func TestRivals(t *testing.T) {
	needServer(t)
	defer stopOwnServers()
	defer stopJava()
	for _, name := range append(rivals, "Redisson fair") {
		t.Run(name, func(t *testing.T) {
			needRival(t, name)
			does := map[string]subject{
				"own keys":  {name, name, nil, fleet{4}.does(task{})},
				"one key":   {name, name, nil, fleet{2}.does(task{Hot: true, Section: time.Millisecond})},
				"processes": {name, name, nil, fleet{1, 1}.does(task{Hot: true})},
			}
			if slices.Contains(deployable, name) {
				does["cluster"] = deployed("cluster", startCluster, uncontended(4), name).subjects[0]
				does["sentinel"] = deployed("sentinel", startSentinels, hot(2, time.Millisecond), name).subjects[0]
			}
			for of, s := range does {
				m := redistest.Must(workload{of, []subject{s}}.measure(1, 50*time.Millisecond, io.Discard))(t)
				if name == "rueidislock" && len(m.Notes) > 0 { // it may leave a waiter asleep on a busy machine
					require.Contains(t, m.Notes[0], errStuck.Error(), of)
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
	needRival(t, "Redisson")
	defer stopJava()
	all := []workload{
		holderKilled.workload("Redisson", "Redisson fair", "Redisson spin"), connectionsCut.workload("Redisson"), redisRestarted.workload("Redisson"),
		sale("Redisson"), {"try", each([]string{"Redisson"}, nil, fleet{8}.does(task{Try: true}))}, waiting("wait", 50, 1, "Redisson", "Redisson fair"),
		held("held", 300, 6*time.Second, nil, "Redisson"),
		readers(50, 1, 8, 0), readers(50, 2, 2, time.Millisecond), permits(2, 1, 8, time.Millisecond), permits(2, 2, 2, 0),
	}
	for i, w := range all {
		m := redistest.Must(w.measure(1, 50*time.Millisecond, io.Discard))(t)
		stuck := false
		for _, note := range m.Notes { // its read/write lock can miss the message that its writers may go on
			require.Contains(t, note, "Redisson read/write", w.name)
			require.Contains(t, note, errStuck.Error(), w.name)
			stuck = true
		}
		for _, s := range w.subjects {
			if !stuck || s.name != "Redisson read/write" {
				require.NotEmpty(t, m.Rounds[0][s.name], w.name)
			}
		}
		if i == 0 {
			javaWorkers[0].kill()
		}
	}
}

// Rivals with servers of their own do every kind of work.
func TestOwnServers(t *testing.T) {
	needServer(t)
	defer stopOwnServers()
	for name, elections := range map[string][]workload{
		"etcd": {leaderKilled.workload("etcd"), leaderResigns.workload("etcd")}, "zookeeper": nil,
	} {
		for _, w := range append(elections, holderKilled.workload(name), sale(name), waiting("wait", 20, 1, name)) {
			t.Run(w.name+" "+name, func(t *testing.T) {
				needRival(t, name)
				m := redistest.Must(w.measure(1, 50*time.Millisecond, io.Discard))(t)
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

// An uncontended cycle is two calls and nothing else, commands within scripts included.
func TestTwoCallsPerCycle(t *testing.T) {
	s := emptyServer(t)
	for _, name := range []string{"holdfast", "floor"} {
		l := libraries[name].open(task{Addrs: s.addrs()})
		defer l.close()
		cycle := l.cycle("key")
		require.NoError(t, cycle(func() {}))
		did := s.during(func() { require.NoError(t, cycle(func() {})) })
		require.Equal(t, 2, did.sent(name))
		for _, mine := range []string{"info", "ping", "config|resetstat"} {
			delete(did.calls, mine)
		}
		require.Equal(t, map[string]int{"evalsha": 2, "exists": 1, "hset": 1, "pexpire": 1, "hdel": 1, "publish": 1}, did.calls, name)
		require.Positive(t, did.longest)
	}
}

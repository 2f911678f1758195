package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if runAgent() {
		return
	}
	spentSoFar = func() processors { return processors{} } // a busy machine is no reason to do all work three times
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		removeFiles()
		os.Exit(status)
	}))
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

// emptyServer starts a Redis for a test.
func emptyServer(t *testing.T) *deployment {
	t.Helper()
	needServer(t)
	d, err := deploy(independent(1))
	require.NoError(t, err)
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
		{subject.rival, []workload{
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
	defer func(d time.Duration) { javaWarm = d }(javaWarm)
	javaWarm = 100 * time.Millisecond
	for _, c := range []struct {
		name     string
		deployed bool // it can use a Redis Cluster and a Sentinel set
		sticks   bool // it may leave a waiter asleep on a busy machine
	}{
		{name: "rueidislock", deployed: true, sticks: true},
		{name: "redsync", deployed: true},
		{name: "redislock"},
		{name: "etcd"},
		{name: "zookeeper"},
		{name: "Redisson", deployed: true},
		{name: "Redisson fair", deployed: true},
		{name: "Redisson spin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			needRival(t, c.name)
			does := map[string]subject{
				"own keys":  {c.name, c.name, nil, fleet{4}.does(task{})},
				"one key":   {c.name, c.name, nil, fleet{2}.does(task{Hot: true, Section: time.Millisecond})},
				"processes": {c.name, c.name, nil, fleet{1, 1}.does(task{Hot: true})},
			}
			if c.deployed {
				does["cluster"] = deployed("cluster", startCluster, uncontended(4), c.name).subjects[0]
				does["sentinel"] = deployed("sentinel", startSentinels, hot(2, time.Millisecond), c.name).subjects[0]
			}
			for of, s := range does {
				w := workload{name: of, subjects: []subject{s}}
				m, err := w.measure(1, 50*time.Millisecond, io.Discard)
				require.NoError(t, err)
				if c.sticks && len(m.Notes) > 0 {
					require.Contains(t, m.Notes[0], errStuck.Error(), of)
					continue
				}
				require.Empty(t, m.Notes, of)
				require.Positive(t, m.Rounds[0][c.name]["lock max µs"], of)
			}
		})
	}
}

// Redisson does every kind of work, in processes that are replaced if they end.
func TestRedisson(t *testing.T) {
	needServer(t)
	needRival(t, "Redisson")
	defer stopJava()
	defer func(d time.Duration) { javaWarm = d }(javaWarm)
	javaWarm = 100 * time.Millisecond
	all := []workload{
		holderKilled.workload("Redisson", "Redisson fair", "Redisson spin"), connectionsCut.workload("Redisson"), redisRestarted.workload("Redisson"),
		sale("Redisson"), {"try", each([]string{"Redisson"}, nil, fleet{8}.does(task{Try: true}))}, waiting("wait", 50, 1, "Redisson", "Redisson fair"),
		held("held", 300, 6*time.Second, nil, "Redisson"),
		readers(50, 1, 8, 0), readers(50, 2, 2, time.Millisecond), permits(2, 1, 8, time.Millisecond), permits(2, 2, 2, 0),
	}
	for i, w := range all {
		m, err := w.measure(1, 50*time.Millisecond, io.Discard)
		require.NoError(t, err)
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
	for _, c := range []struct {
		name  string
		elect []breakage
	}{{"etcd", []breakage{leaderKilled, leaderResigns}}, {"zookeeper", nil}} {
		all := []workload{holderKilled.workload(c.name), sale(c.name), waiting("wait", 20, 1, c.name)}
		for _, b := range c.elect {
			all = append(all, b.workload(c.name))
		}
		for _, w := range all {
			t.Run(w.name+" "+c.name, func(t *testing.T) {
				needRival(t, c.name)
				m, err := w.measure(1, 50*time.Millisecond, io.Discard)
				require.NoError(t, err)
				require.Empty(t, m.Notes)
				require.NotEmpty(t, m.Rounds[0][c.name])
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
		did := during(s, func() { require.NoError(t, cycle(func() {})) })
		require.Equal(t, 2, did.sent(name))
		for _, mine := range []string{"info", "ping", "config|resetstat"} {
			delete(did.calls, mine)
		}
		require.Equal(t, map[string]int{"evalsha": 2, "exists": 1, "hset": 1, "pexpire": 1, "hdel": 1, "publish": 1}, did.calls, name)
		require.Positive(t, did.longest)
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// deployment is one Redis, several independent ones, a Redis Cluster or a Sentinel set.
type deployment struct {
	*starter
	masters []*redistest.Server // whose work counts
	seeds   []string            // what clients are told
	cluster bool
	set     string // the master set that the Sentinels at seeds know
}

func newDeployment(s *starter, masters ...*redistest.Server) *deployment {
	d := &deployment{starter: s, masters: masters}
	for _, one := range masters {
		d.seeds = append(d.seeds, one.Addr())
	}
	return d
}

// independent runs n servers that know nothing of each other.
func independent(n int) func(*starter) *deployment {
	return func(s *starter) *deployment {
		all := make([]*redistest.Server, n)
		for i := range all {
			all[i] = redistest.Start(s, "--latency-tracking-info-percentiles", "100")
		}
		return newDeployment(s, all...)
	}
}

// busy is how long a server may be silent and counts as alive, in ms: a busy one is not dead.
const busy = "30000"

// startCluster runs three masters without replicas.
func startCluster(s *starter) *deployment {
	d := newDeployment(s, redistest.StartCluster(s, 3, 0, "--cluster-node-timeout", busy).Masters(s)...)
	d.cluster = true
	return d
}

// startSentinels runs a master with two replicas, and three Sentinels.
func startSentinels(s *starter) *deployment {
	all := redistest.StartSentinel(s)
	d := newDeployment(s, all.AwaitMaster(s, nil))
	d.seeds, d.set = nil, redistest.MasterSet
	for _, one := range all.Sentinels() {
		one.Do(s, "SENTINEL", "SET", d.set, "down-after-milliseconds", busy)
		d.seeds = append(d.seeds, one.Addr())
	}
	return d
}

// deployed is a workload whose subjects all do the same, on servers that start anew for each.
func deployed(on string, start func(*starter) *deployment, w workload, libraries ...string) workload {
	return workload{on + "/" + w.name, each(libraries, start, w.subjects[0].run)}
}

func (d *deployment) addrs() []string { return d.seeds }

func (d *deployment) during(f func()) spent {
	sum := spent{calls: make(map[string]int)}
	for _, s := range d.masters {
		sum.cpu -= cpuIn(infoOf(s))
		must(s.TryDo("CONFIG", "RESETSTAT"))
	}
	f()
	for _, s := range d.masters {
		info := infoOf(s)
		calls, _ := redistest.Calls(info)
		for name, n := range calls {
			sum.calls[name] += n
		}
		sum.cpu += cpuIn(info)
		sum.longest = max(sum.longest, number(info, `latency_percentiles_usec_evalsha:.*p100=([0-9.]+)`)/1000)
	}
	return sum
}

// empty makes a single server as good as new, except that it still knows scripts. One that has
// ended is replaced.
func (d *deployment) empty() error {
	if _, err := d.masters[0].TryDo("FLUSHALL"); err == nil {
		return nil
	}
	return d.restart()
}

// restart kills a single server and starts an empty one in its place.
func (d *deployment) restart() (err error) {
	d.masters[0].Restart()
	err, d.failure = d.failure, nil
	return err
}

// starter is all that package redistest asks of a test: it keeps what fails, and what to undo.
type starter struct {
	testing.TB // nil
	ends       []func()
	failure    error
}

// deploy starts servers as a test does. After a failure nothing of them is left.
func deploy[S store](start func(*starter) S) (st S, err error) {
	s := &starter{}
	defer func() {
		if err != nil {
			s.stop()
			err = fmt.Errorf("%w: %w", errNotStarted, err)
		}
	}()
	defer caught(&err)
	st = start(s)
	return st, s.failure
}

// stop stops the servers and removes their files.
func (s *starter) stop() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}

func (s *starter) Helper()      {}
func (s *starter) Name() string { return "start" }

func (s *starter) TempDir() string {
	dir := must(os.MkdirTemp(must(filesDir()), ""))
	s.Cleanup(func() { _ = os.RemoveAll(dir) }) // if that fails, removeFiles tries again
	return dir
}

func (s *starter) Cleanup(end func()) { s.ends = append(s.ends, end) }

func (s *starter) Errorf(format string, args ...any) {
	s.failure = errors.Join(s.failure, fmt.Errorf(format, args...))
}

func (s *starter) FailNow() { check(s.failure) }

func (s *starter) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	s.FailNow()
}

func (s *starter) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }
func (s *starter) Skip(args ...any)  { s.Fatal(args...) }

// filesDir is where all files of this process are: in memory if the system has a place for
// them, so that no disk slows anything down.
var filesDir = sync.OnceValues(func() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "holdfast-bench-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "holdfast-bench-")
})

// removeFiles removes them at the end.
func removeFiles() {
	if dir, err := filesDir(); err == nil {
		_ = os.RemoveAll(dir) // if that fails, few bytes are left
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// deployment is a Redis Cluster or a Sentinel set. One client is enough for all of it.
type deployment struct {
	*starter
	nodes          // the masters, whose work counts
	seeds []string // what clients are told
	set   string   // the master set that the Sentinels at seeds know; "": a Redis Cluster
}

func (d *deployment) addrs() []string { return d.seeds }

func (d *deployment) stop() {
	for _, s := range d.nodes {
		s.admin.Close()
	}
	d.end()
}

// busy is how long a server may be silent and counts as alive, in ms: a busy one is not dead.
const busy = "30000"

// startCluster runs three masters without replicas.
func startCluster(s *starter) *deployment {
	d := &deployment{}
	for _, master := range redistest.StartCluster(s, 3, 0, "--cluster-node-timeout", busy).Masters(s) {
		d.seeds = append(d.seeds, master.Addr())
		d.nodes = append(d.nodes, &server{addr: master.Addr()})
	}
	return d
}

// startSentinels runs a master with two replicas, and three Sentinels.
func startSentinels(s *starter) *deployment {
	all := redistest.StartSentinel(s)
	d := &deployment{nodes: nodes{{addr: all.AwaitMaster(s, nil).Addr()}}, set: redistest.MasterSet}
	for _, one := range all.Sentinels() {
		one.Do(s, "SENTINEL", "SET", d.set, "down-after-milliseconds", busy)
		d.seeds = append(d.seeds, one.Addr())
	}
	return d
}

// deploy starts the servers and connects to the masters.
func deploy(start func(*starter) *deployment) (d *deployment, err error) {
	s := &starter{}
	if s.dir, err = memoryDir(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() { // a failure ends it
		defer close(done)
		d = start(s)
	}()
	<-done
	if s.failure != nil {
		s.end()
		return nil, fmt.Errorf("%w: %w", errNotStarted, s.failure)
	}
	d.starter = s
	for i, one := range d.nodes {
		if err := one.connect(); err != nil {
			d.nodes = d.nodes[:i]
			d.stop()
			return nil, err
		}
	}
	return d, nil
}

// deployed is a workload whose subjects all do the same, on servers that start anew for each.
func deployed(on string, start func(*starter) *deployment, w workload, libraries ...string) workload {
	does := w.subjects[0].run
	return workload{on + "/" + w.name, each(libraries, 0, func(_ store, library string, d time.Duration) (report.Sample, error) {
		st, err := deploy(start)
		if err != nil {
			return nil, err
		}
		defer st.stop()
		return does(st, library, d)
	})}
}

// starter is all that package redistest asks of a test: it keeps what fails, and what to undo.
type starter struct {
	testing.TB // nil
	dir        string
	ends       []func()
	failure    error
}

func (s *starter) Helper()      {}
func (s *starter) Name() string { return "start" }

func (s *starter) TempDir() string {
	dir, err := os.MkdirTemp(s.dir, "")
	if err != nil {
		s.Fatal(err)
	}
	return dir
}

func (s *starter) Cleanup(end func()) { s.ends = append(s.ends, end) }

func (s *starter) Errorf(format string, args ...any) {
	s.failure = errors.Join(s.failure, fmt.Errorf(format, args...))
}

func (s *starter) FailNow() { runtime.Goexit() }

func (s *starter) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	s.FailNow()
}

func (s *starter) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }
func (s *starter) Skip(args ...any)  { s.Fatal(args...) }

// end stops the servers and removes their files.
func (s *starter) end() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
	_ = os.RemoveAll(s.dir)
}

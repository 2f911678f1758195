// Package chaos has processes compete for locks on five nodes while all goes wrong that
// a quorum promises to survive.
package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Masters is a lock kind on several independent nodes, as the chaos run sees it.
type Masters struct {
	// New makes a locker on the nodes of clients.
	New func(clients []rueidis.Client, o MastersOptions) (locktest.Locker, error)
	// NothingHeld states that no lease of the nodes is held.
	NothingHeld func(clients []rueidis.Client, o MastersOptions) error
}

// MastersOptions are those of the chaos run.
type MastersOptions struct {
	Lease       time.Duration // also the longest
	Handover    *time.Duration
	Fencing     bool
	ClockFaults int
	Unguarded   bool
}

// Tested is set by the tests of a lock kind on several nodes, in their processes and
// in the children.
var Tested Masters

// Campaign is how a campaign is made.
type Campaign struct {
	Fencing bool
	Clocks  bool // now and then the clock of one node is wrong
	Faults  int  // clocks of which the lock is told that they may be wrong
	Lasting bool // nodes forget nothing, as they write each change to disk
	// With Lasting or of controls only: nodes vote right after a restart.
	Unguarded bool
	// Of controls only.
	NothingHeld bool // programs that start say that nothing is held
	Orphans     bool // the control is to find orphans, and not overlaps
}

const (
	chaosNodes     = 5
	chaosProcesses = 4
	chaosLease     = 600 * time.Millisecond
)

// Run has four processes of 16 goroutines each compete for few keys on five
// masters, and hold them for up to several leases, while all goes wrong at once that
// costs no more than votes: nodes forget one after the other, all of them, as fast as
// may be, or restart with what they had; nodes and processes stand still and are killed, as many as there are;
// networks fail between any; programs start; and, if asked for, the
// clock of one node at a time is wrong. It checks that the leases of a key never
// overlapped, that their fences grew, and that no node gave a key to an owner that it
// had been told to forget.
// It logs a line a minute, and at last a verdict. SOAK_SEED repeats the faults of a run.
//
// It goes on for as long as exclusion.AtMost says, until enough has happened, as a run whose processes
// or faults stood still proves nothing.
func Run(t *testing.T, how Campaign, length time.Duration) {
	c := newChaos(t, how)
	began := time.Now()
	run := c.run(func() bool {
		passed := time.Since(began)
		return passed >= length && (passed >= exclusion.AtMost(length) || c.lacks(c.recorded(false), length) == "")
	})
	found := exclusion.Check(run.Intervals)
	c.explain(found)
	require.Empty(t, found.Overlaps, "two holders")
	require.Empty(t, found.Disorder, "fences out of order")
	require.Empty(t, c.orphans(), "taken after its end")
	require.Empty(t, c.lacks(run, length), "too little has happened")
}

// lacks says of what there was too little for a run of that length.
func (c *chaos) lacks(run exclusion.Records, length time.Duration) string {
	c.mu.Lock()
	did := maps.Clone(c.faults)
	c.mu.Unlock()
	perMinute := map[string]int{"faults": 100, "grants": 600, "holders killed": 5}
	for _, kind := range c.kinds() {
		did["faults"] += did[kind]
		perMinute[kind] = 1
	}
	losses := []string{"ran-out", "fixed", "capped"}
	if !c.how.Lasting { // a node that forgets nothing denies no lease that lives
		losses = append(losses, "denied")
	}
	for _, kind := range losses {
		did["leases lost: "+kind], perMinute["leases lost: "+kind] = run.Losses[kind], 3
	}
	did["grants"], did["holders killed"] = len(run.Intervals), run.Killed
	for what, n := range perMinute {
		if least := n * int(length/time.Second) / 60; did[what] < least {
			return fmt.Sprintf("%s: %d of %d", what, did[what], least)
		}
	}
	return ""
}

// RunControl makes the same run with a lock that fails, or with more faults than
// it promises to survive. It ends as soon as that is seen, which must be in time.
func RunControl(t *testing.T, how Campaign, length time.Duration) {
	c := newChaos(t, how)
	began := time.Now()
	run := c.run(func() bool {
		if time.Since(began) >= length {
			return true
		}
		if how.Orphans {
			return len(c.orphans()) > 0
		}
		return len(exclusion.Check(c.recorded(false).Intervals).Overlaps) > 0
	})
	found := exclusion.Check(run.Intervals)
	c.explain(found)
	t.Logf("found after %v: overlaps %d, fences out of order %d, orphans %d", time.Since(began).Round(time.Millisecond),
		len(found.Overlaps), len(found.Disorder), len(c.orphans()))
	if how.Orphans {
		require.NotEmpty(t, c.orphans(), "not found")
	} else {
		require.NotEmpty(t, found.Overlaps, "not found")
	}
}

// chaos is one run.
type chaos struct {
	t       *testing.T
	how     Campaign
	nodes   []*redistest.Server
	ends    []*ends // by node
	file    string
	all     []*victim
	randoms *rand.Rand // makes those of the injectors; newChaos's and run's own

	processes sync.RWMutex // held for reading while a process suffers
	over      chan struct{}

	mu     sync.Mutex
	faults map[string]int           // by kind; guarded by mu
	diary  []string                 // guarded by mu
	died   map[string]time.Duration // when a process was gone, guarded by mu
}

func newChaos(t *testing.T, how Campaign) *chaos {
	c := &chaos{
		t: t, how: how, randoms: exclusion.SoakSeed(t), over: make(chan struct{}),
		faults: map[string]int{}, died: map[string]time.Duration{},
	}
	var clients []rueidis.Client
	for range chaosNodes {
		var args []string
		if how.Lasting {
			args = []string{"--dir", lasting(t), "--appendonly", "yes", "--appendfsync", "always"}
		}
		c.nodes = append(c.nodes, redistest.StartWithClock(t, args...))
		c.ends = append(c.ends, new(ends))
	}
	for i, n := range c.nodes {
		c.listen(i)
		clients = append(clients, n.Client(t))
	}
	locktest.Await(t, func() bool { // a busy machine may be late
		return Tested.NothingHeld(clients, MastersOptions{Lease: chaosLease, Unguarded: how.Unguarded}) == nil
	})
	c.file = filepath.Join(t.TempDir(), "records")
	require.NoError(t, os.WriteFile(c.file, nil, 0o600))
	for i := range chaosProcesses {
		v := &victim{c: c, name: strconv.Itoa(i), random: c.random()}
		for _, n := range c.nodes {
			v.proxies = append(v.proxies, redistest.NewProxy(t, n.Addr()))
		}
		v.start()
		c.all = append(c.all, v)
	}
	return c
}

// lasting is a folder that outlives a killed process, in memory if the machine has such: a busy disk
// would keep each write waiting for longer than a node is given.
func lasting(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "holdfast-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func (c *chaos) random() *rand.Rand { return rand.New(rand.NewPCG(c.randoms.Uint64(), 0)) }

// run brings faults upon the nodes, the processes and the ways between them until enough
// says so, and returns what was recorded.
func (c *chaos) run(enough func() bool) exclusion.Records {
	var work sync.WaitGroup
	random := c.random()
	work.Go(func() { c.nodesSuffer(random) })
	if random := c.random(); c.how.Clocks {
		work.Go(func() { c.clocksSuffer(random) })
	}
	far := c.random()
	work.Go(func() { c.distance(far) })
	for _, v := range c.all {
		random := c.random()
		work.Go(v.suffer)
		work.Go(func() { v.loseTouch(random) })
	}
	work.Go(func() {
		for c.sleep(time.Minute) {
			c.t.Log(c.verdict(false))
		}
	})
	for !enough() {
		time.Sleep(200 * time.Millisecond)
	}
	close(c.over)
	work.Wait()
	for _, v := range c.all {
		v.child.Say("stop")
	}
	for _, v := range c.all {
		v.child.Await()
	}
	c.t.Log("verdict: " + c.verdict(true))
	return c.recorded(true)
}

func (c *chaos) verdict(over bool) string {
	run := c.recorded(over)
	c.mu.Lock()
	defer c.mu.Unlock()
	return exclusion.Verdict(run, exclusion.Check(run.Intervals), c.faults)
}

func (c *chaos) recorded(over bool) exclusion.Records {
	c.mu.Lock()
	died := maps.Clone(c.died)
	c.mu.Unlock()
	data := locktest.Must(os.ReadFile(c.file))(c.t)
	return locktest.Must(exclusion.ReadRecords(data, died, over))(c.t)
}

// sleep is false when the run is over.
func (c *chaos) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.over:
		return false
	}
}

// did notes a fault.
func (c *chaos) did(kind string, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[kind]++
	c.diary = append(c.diary, fmt.Sprintf("%v %s ", locktest.Clock(), kind)+fmt.Sprintf(format, args...))
}

// explain logs what was found, and what happened before.
func (c *chaos) explain(found exclusion.Breaches) {
	if all := append(append(found.Overlaps, found.Disorder...), c.orphans()...); len(all) > 0 {
		c.t.Logf("found:\n%s\nfaults:\n%s", strings.Join(all[:min(len(all), 5)], "\n"), strings.Join(c.diary, "\n"))
	}
}

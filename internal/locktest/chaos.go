package locktest

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Masters is a door on several independent nodes, as the chaos run sees it.
type Masters struct {
	// New makes a locker on the nodes of clients.
	New func(clients []rueidis.Client, o MastersOptions) (Locker, error)
	// Bootstrap gives fresh nodes their vote.
	Bootstrap func(clients []rueidis.Client, o MastersOptions) error
}

// MastersOptions are those of the chaos run.
type MastersOptions struct {
	Lease     time.Duration // the longest, too
	Handover  *time.Duration
	Unguarded bool
}

// ChaosDoor is set by the tests of a door on several nodes, in their processes and
// in the children.
var ChaosDoor Masters

const (
	chaosNodes     = 5
	chaosProcesses = 4
	chaosLease     = 600 * time.Millisecond
)

// RunChaos has four processes of 16 goroutines each compete for few keys on five
// masters, while nodes are killed and come back empty, are flushed, paused and cut
// off one way and both ways, clocks jump and run wrong, and processes are killed
// and paused; missing nodes and wrong clocks together are never more than the two
// that a quorum of five does without. It checks that the leases of a key never
// overlapped and that their fences grew. It lasts 150 s, or as long as CHAOS_TIME
// says; CHAOS_SEED repeats the faults of a run.
func RunChaos(t *testing.T) {
	length := 150 * time.Second
	if s := os.Getenv("CHAOS_TIME"); s != "" {
		var err error
		length, err = time.ParseDuration(s)
		require.NoError(t, err, "CHAOS_TIME")
	}
	c := newChaos(t)
	run := c.run(length, c.anyFault)
	found := checkExclusion(run.intervals)
	require.Empty(t, found.overlaps, "two holders")
	require.Empty(t, found.disorder, "fences out of order")

	// A run whose processes or faults stood still proves nothing.
	seconds := int(length / time.Second)
	require.GreaterOrEqual(t, len(run.intervals), 10000*seconds/150, "grants")
	for _, kind := range append(slices.Collect(maps.Keys(c.kinds())), "process killed", "process paused") {
		require.GreaterOrEqual(t, c.faults[kind], seconds/20, kind)
	}
	total := 0
	for _, n := range c.faults {
		total += n
	}
	require.GreaterOrEqual(t, total, 300*seconds/150, "faults")
	require.GreaterOrEqual(t, run.killed, seconds/50, "holders killed")
	require.GreaterOrEqual(t, run.lost, seconds/50, "leases lost")
}

// RunChaosControl makes runs in which leases must overlap, until they do: the
// check of RunChaos finds what it looks for.
//
//	unguarded  nodes vote right after a restart
//	clocks     a majority of the clocks is wrong
//	half       two of five nodes make a quorum
func RunChaosControl(t *testing.T, how string) {
	for range 30 { // of wrong clocks, one run of three shows it
		c := newChaos(t, how)
		fault := c.restarts
		switch how {
		case "clocks":
			fault = c.wrongClocks
		case "half":
			fault = c.noFault
		}
		if len(checkExclusion(c.run(5*time.Second, fault).intervals).overlaps) > 0 {
			return
		}
	}
	require.Fail(t, "no overlap is found")
}

// chaos is one run.
type chaos struct {
	t      *testing.T
	args   []string
	random *rand.Rand // of the run's own goroutine
	nodes  []*redistest.Server
	file   string
	all    []*chaosVictim

	processes sync.RWMutex // held for reading while a process suffers, or what it left behind lasts
	standing  sync.Mutex   // held while no process may take a lock
	suffering map[int]bool // the nodes whose turn it is

	mu     sync.Mutex
	faults map[string]int // by kind; guarded by mu
}

func newChaos(t *testing.T, args ...string) *chaos {
	seed := rand.Uint64()
	if s := os.Getenv("CHAOS_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "CHAOS_SEED")
	}
	t.Logf("seed: CHAOS_SEED=%d", seed)
	c := &chaos{t: t, args: args, random: rand.New(rand.NewPCG(seed, 0)), faults: map[string]int{}}
	var clients []rueidis.Client
	for range chaosNodes {
		n := redistest.StartWithClock(t)
		c.nodes = append(c.nodes, n)
		clients = append(clients, n.Client(t))
	}
	lease, _ := chaosTerms(args)
	require.NoError(t, ChaosDoor.Bootstrap(clients, MastersOptions{Lease: lease}))
	c.file = filepath.Join(t.TempDir(), "records")
	require.NoError(t, os.WriteFile(c.file, nil, 0o600))
	for i := range chaosProcesses {
		v := &chaosVictim{
			c: c, name: strconv.Itoa(i), died: map[string]time.Duration{},
			random: rand.New(rand.NewPCG(c.random.Uint64(), 0)),
		}
		for _, n := range c.nodes {
			v.proxies = append(v.proxies, redistest.NewProxy(t, n.Addr()))
		}
		v.start()
		c.all = append(c.all, v)
	}
	return c
}

// run brings faults upon the processes, and by fault upon the nodes, and returns
// what was recorded.
func (c *chaos) run(length time.Duration, fault func(end time.Time)) records {
	end := time.Now().Add(length)
	var work sync.WaitGroup
	for _, v := range c.all {
		work.Go(func() { v.suffer(end) })
	}
	for time.Now().Before(end) {
		fault(end)
	}
	work.Wait()
	for _, v := range c.all {
		v.child.Say("stop")
	}
	died := map[string]time.Duration{}
	for _, v := range c.all {
		v.child.Await()
		maps.Copy(died, v.died)
	}
	data, err := os.ReadFile(c.file)
	require.NoError(c.t, err)
	run, err := readRecords(data, died, true)
	require.NoError(c.t, err)
	c.t.Logf("%d grants, %d holders killed, %d leases lost, faults: %v", len(run.intervals), run.killed, run.lost, c.faults)
	return run
}

func (c *chaos) count(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[kind]++
}

// chaosVictim is the place of one process of a run. One goroutine's own.
type chaosVictim struct {
	c       *chaos
	name    string // of the place; its processes are name.1, name.2, …
	random  *rand.Rand
	proxies []*redistest.Proxy // its ways to the nodes
	child   *Child
	starts  int
	died    map[string]time.Duration // when a process was gone
}

func (v *chaosVictim) start() {
	v.starts++
	var addrs []string
	for _, p := range v.proxies {
		addrs = append(addrs, p.Addr())
	}
	args := []string{strings.Join(addrs, ","), v.c.file, v.process(), strconv.FormatUint(v.random.Uint64(), 10)}
	v.child = StartChild(v.c.t, "chaos", slices.Concat(args, v.c.args)...)
	v.child.Expect("ready")
}

func (v *chaosVictim) process() string { return v.name + "." + strconv.Itoa(v.starts) }

// suffer kills and pauses the process now and then.
func (v *chaosVictim) suffer(end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(2*chaosLease + upTo(v.random, 4*chaosLease))
		v.fault()
	}
}

func (v *chaosVictim) fault() {
	v.c.processes.RLock()
	defer v.c.processes.RUnlock()
	switch v.random.IntN(2) {
	case 0:
		v.child.Kill()
		v.died[v.process()] = Clock()
		v.start()
		v.c.count("process killed")
	default:
		v.child.Pause()
		time.Sleep(upTo(v.random, 2*chaosLease))
		v.child.Resume()
		v.c.count("process paused")
	}
	time.Sleep(chaosLease)
}

func upTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

package campaign_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // miniredis makes an interpreter for each script
	goleak.VerifyTestMain(m)
}

var (
	seeds   = flag.Uint64("seeds", 2, "how many campaigns of each kind")
	first   = flag.Uint64("seed", 1, "the first seed")
	length  = flag.Duration("length", 3*time.Minute, "of a campaign of rlock, in virtual time; the others, which cost more, are shorter")
	callers = flag.Int("callers", 16, "how many callers there are at most, or one for each locker; fewer make an hour cheaper")
	life    = flag.Duration("life", 0, "the least virtual time of all campaigns together")
	grants  = flag.Int("grants", 0, "their least grants")
	faults  = flag.Int("faults", 0, "their least faults")
	events  = flag.Int("events", 20, "how many events to show before a broken promise")
)

// campaign is lockers of one kind that lead a hard life for a while. All that it has follows
// from its seed.
type campaign struct {
	kind      string
	seed      uint64
	length    time.Duration
	lease     time.Duration
	keys      int
	processes int
	callers   int // of each process
	nodes     int
	permits   int // of each key; 1 but for semaphore
	fencing   bool
	handover  bool
	confirmed bool // of fair
	guard     bool // of multilock: nodes forget
	clocks    int  // of multilock: how many clocks jump
	faults    []sim.FaultKind
	fixed     int // one lease in so many is fixed
	long      int // one section in so many is
	bound     bounds

	world   *sim.World
	judge   *judge
	clients [][]rueidis.Client // of each process
	lockers []*atomic.Pointer[sim.Locker]
	side    sync.WaitGroup // watchers of leases
	began   time.Time
	stop    time.Time
	played  int                // faults
	wanted  string             // the promise that has to be broken, in a control; "": none
	life    context.Context    // of the calls; ends when it has been found
	found   context.CancelFunc // ends life
}

// bounds are of the figures of progress.
type bounds struct{ free, orphan time.Duration }

// trip is a round trip, on average.
var trip = sim.Trip[0] + sim.Trip[1]

// kinds are the lock kinds, with their bounds, and how many times more an hour of life costs.
//
// Where links and servers are well, a released key has its next holder within a round trip or
// two (G4, G8). The bounds are for what comes before, until a locker has found out that they are
// well again: its last pause between calls, which is added to them, and a second, after which it
// looks without a message; fair looks by a heartbeat.
var kinds = map[string]struct {
	bounds
	cost time.Duration
}{
	"rlock":     {bounds{free: time.Second + 45*trip, orphan: time.Second}, 1},
	"fair":      {bounds{free: time.Second + 450*trip, orphan: time.Second}, 3},
	"multilock": {bounds{free: time.Second + 450*trip, orphan: time.Second}, 10},
	"semaphore": {bounds{free: time.Second + 45*trip, orphan: time.Second}, 2},
	// Processes that Redis does not hear any more have a second to take a lock that is free. Without
	// messages, an attempt each second finds out that it is free, and that their second is over.
	"rwlock": {bounds{free: 3*time.Second + 135*trip, orphan: time.Second}, 2},
}

// of are the bounds at a lease: with the longest pause between calls that fail.
func (b bounds) of(lease time.Duration) bounds {
	pause := min(lease/10, time.Second)
	return bounds{b.free + pause, b.orphan + pause}
}

// newCampaign draws one from its seed.
func newCampaign(kind string, seed uint64, length time.Duration) *campaign {
	r := sim.Random(seed, "campaign "+kind)
	c := &campaign{
		kind: kind, seed: seed, length: length, lease: 6 * time.Second, nodes: 1, faults: slices.Concat(sim.OfLinks, sim.OfLinks, sim.OfLinks, sim.OfServers),
		permits: 1, keys: 1 + r.IntN(3), processes: 1 + int(seed%8), fencing: seed/3%2 == 0, handover: r.IntN(3) > 0, confirmed: r.IntN(3) == 0,
	}
	if r.IntN(3) == 0 {
		c.lease = holdfast.DefaultLease
	}
	c.bound = kinds[kind].of(c.lease)
	c.callers = 1 + r.IntN(max(1, *callers/c.processes))
	c.fixed, c.long = []int{8, 2}[r.IntN(2)], []int{5, 2}[r.IntN(2)]
	if r.IntN(2) == 0 { // one kind of fault hides another: half of the campaigns have two kinds only
		c.faults = []sim.FaultKind{sim.OfLinks[r.IntN(len(sim.OfLinks))], sim.OfLinks[r.IntN(len(sim.OfLinks))]}
	}
	if kind == "semaphore" {
		c.permits, c.fencing = []int{3, 1}[seed%2], false
	}
	if kind == "multilock" {
		c.nodes = 3 + 2*r.IntN(2)
		switch seed % 3 { // with and without fencing
		case 0:
			c.guard = true
			c.bound.free += c.lease // a quarantine begins when a client first sees the node, which may be late
			c.faults = append(c.faults, sim.LoseMemory, sim.LoseMemory)
		case 1:
			c.nodes, c.clocks = 5, 1
			c.faults = append(c.faults, sim.ClockJump, sim.ClockJump)
		}
	}
	return c
}

func (c *campaign) String() string {
	return fmt.Sprintf("%s, seed %d: %d processes of %d callers, %d keys of %d permits, %d nodes, faults %d, fixed 1/%d, long 1/%d, fencing %t, handover %t, confirmed %t, guard %t, clocks %d",
		c.kind, c.seed, c.processes, c.callers, c.keys, c.permits, c.nodes, len(c.faults), c.fixed, c.long, c.fencing, c.handover, c.confirmed, c.guard, c.clocks)
}

// names are the keys; the last is that of ForceUnlock.
func (c *campaign) names() (all []string) {
	for i := range c.keys {
		all = append(all, fmt.Sprint("k", i))
	}
	return append(all, "forced")
}

// need is how many servers give a lease.
func (c *campaign) need() int { return c.nodes/2 + 1 + c.clocks }

// forgets reports whether holders may lose leases before their deadlines.
func (c *campaign) forgets() bool { return c.guard || c.clocks > 0 }

// open opens a locker of a process, on clients of its own.
func (c *campaign) open(process int) (sim.Locker, error) {
	clients := c.clients[process]
	log := slog.New(slog.NewTextHandler(c.judge, &slog.HandlerOptions{ReplaceAttr: withoutTime})).With("process", process)
	handover := 10 * time.Millisecond
	if !c.handover {
		handover = 0
	}
	opts := []holdfast.Option{holdfast.WithLease(c.lease), holdfast.WithLocalHandover(handover), holdfast.WithLogger(log)}
	if c.fencing {
		opts = append(opts, holdfast.WithFencing())
	}
	switch c.kind {
	case "rlock":
		return rlock.New(clients[0], opts...)
	case "rwlock":
		return rwlock.New(clients[0], opts...)
	case "fair":
		if c.confirmed {
			opts = append(opts, fair.WithConfirmedGrants())
		}
		return fair.New(clients[0], opts...)
	case "semaphore":
		return semaphore.New(clients[0], c.permits, opts...)
	}
	opts = append(opts, multilock.WithMaxLease(c.lease))
	if !c.guard {
		opts = append(opts, multilock.WithoutRestartGuard())
	}
	if c.clocks > 0 {
		opts = append(opts, multilock.WithClockFaults(c.clocks))
	}
	return multilock.New(clients, opts...)
}

// withoutTime leaves the time out of the log, as each event has its own.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// run leads the campaign, in a bubble of t, and returns when nothing of it is left.
func (c *campaign) run(t *testing.T) {
	c.lead(t, func(all *sync.WaitGroup) {
		all.Go(func() {
			faults := sim.Schedule(c.seed, c.processes, c.nodes, c.length, c.lease/2, 2*c.lease, c.faults)
			c.world.Play(faults, func(f sim.Fault) {
				c.played++
				c.judge.fault(f)
			})
		})
		all.Go(c.replace)
		for p := range c.processes {
			for n := range c.callers {
				all.Go(c.caller(p, n).run)
			}
		}
	})
}

// lead makes the world and its lockers, lets them live until all that live has begun is over, and
// looks at what is left.
func (c *campaign) lead(t *testing.T, live func(*sync.WaitGroup)) {
	c.life, c.found = context.WithCancel(t.Context())
	defer c.found()
	c.began = time.Now()
	c.stop = c.began.Add(c.length)
	c.world = sim.NewWorld(t, c.seed, c.processes, c.nodes)
	c.judge = newJudge(c)
	for p := range c.processes {
		c.clients = append(c.clients, c.world.Clients(p, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = c.lease / 4 }))
		l := locktest.Must(c.open(p))(t)
		at := new(atomic.Pointer[sim.Locker])
		at.Store(&l)
		c.lockers = append(c.lockers, at)
	}
	if c.guard {
		require.NoError(t, c.locker(0).(*multilock.Locker).DeclareNothingHeld(t.Context()))
	}
	m, over := &monitor{j: c.judge}, make(chan struct{})
	c.side.Go(func() { m.run(over) })
	var all sync.WaitGroup
	live(&all)
	stuck := time.AfterFunc(c.length+time.Duration(12+3*c.processes*c.callers)*c.lease, func() { // all may have to work one after the other
		c.judge.mu.Lock()
		defer c.judge.mu.Unlock()
		c.judge.breaks("STUCK: some callers do not return")
	})
	all.Wait()
	stuck.Stop()
	close(over)
	for p := range c.lockers {
		_ = c.locker(p).Close()
	}
	c.side.Wait()
	c.histories()
	c.leftovers()
}

// replace closes a locker now and then, and opens another for its process. That of a semaphore
// gives a key fewer permits, or as many as at first.
func (c *campaign) replace() {
	for r := sim.Random(c.seed, "replace"); ; {
		pause := time.Duration(r.Int64N(int64(20 * c.lease)))
		if time.Now().Add(pause).After(c.stop) {
			return
		}
		time.Sleep(pause)
		p := r.IntN(c.processes)
		c.renew(p)
		if l, ok := c.locker(p).(*semaphore.Locker); ok {
			n := 1 + r.IntN(c.permits)
			c.judge.asks("Resize")
			c.judge.say("k0 gets %d permits: %v", n, l.Resize(c.life, "k0", n))
		}
	}
}

// permitsOf is how many permits a key has.
func (c *campaign) permitsOf(name string) int {
	if n, err := strconv.Atoi(c.world.Servers[0].Redis().HGet("holdfast_permits:{"+name+"}", "permits")); err == nil {
		return n
	}
	return c.permits
}

// renew closes the locker of a process, and opens another.
func (c *campaign) renew(process int) {
	fresh, err := c.open(process)
	if err != nil {
		panic(err) // the options are those of the first
	}
	old := *c.lockers[process].Swap(&fresh)
	began := time.Now()
	err = old.Close()
	c.judge.asks("Close")
	c.judge.say("process %d has closed its locker in %v: %v", process, time.Since(began), err)
	c.judge.excuse(2 * c.lease) // it may not have been able to release all
}

// histories looks at what holders have seen of each key. Those of a ForceUnlock do not know at once
// that they are holders no more, and those of permits work side by side.
func (c *campaign) histories() {
	c.judge.mu.Lock()
	defer c.judge.mu.Unlock()
	for name, k := range c.judge.keys {
		if name != "forced" && c.permits == 1 && !k.counter.linearizable() {
			c.judge.breaks("HISTORY of %s: %d sections are not linearizable", name, len(k.counter.history))
		}
	}
}

// leftovers looks at the servers when the last lease must be over.
func (c *campaign) leftovers() {
	time.Sleep(2*c.lease + 61*time.Second)
	c.judge.mu.Lock()
	defer c.judge.mu.Unlock()
	for i, s := range c.world.Servers {
		for _, k := range s.Redis().Keys() {
			if !strings.Contains(k, "token") && k != "holdfast_node" && k != "holdfast_permits:{k0}" {
				c.judge.breaks("LEFT on server %d: %q, for %v", i, k, s.Redis().TTL(k))
			}
		}
	}
}

// report is what the campaign was like.
func (c *campaign) report() string {
	j := c.judge
	return fmt.Sprintf("%v\n\t%v of life, %d grants, %d faults; free for %v (%s), held by nobody for %v (%s)\n\t%v\n\t%v; %v",
		c, c.length, j.grants, c.played, j.free.longest, j.free.where, j.orphan.longest, j.orphan.where, j.calls, j.outcomes, j.counts)
}

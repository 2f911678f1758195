package exclusion

import (
	"encoding/json"
	"fmt"
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

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

const exclusionProcesses = 4

// Run has four processes of 16 goroutines each compete for few keys on each deployment of
// Redis while they are killed, paused and lose their connections at random, and servers fail, too.
// Only real processes and servers have that; campaigns in virtual time have links that are slow,
// silent or refused. Run checks that the leases of a key never overlapped, those of readers among
// themselves excepted, and that their fences grew. Where servers take over from one another, an
// overlap counts apart if a write that a failover has lost explains it: then the fences grew, and no
// renewal has confirmed one of the two holds since the failover.
//
// A run lasts 15 s, or half of SOAK_TIME, and for as long as AtMost says until enough has
// happened. It logs a line a minute, and at last a verdict. SOAK_SEED repeats the faults of the processes.
func Run(t *testing.T, k locktest.Kind) {
	eachSite(t, func(t *testing.T, start func(*testing.T) *site) {
		length := SoakTime(t, 30*time.Second) / 2
		c := newCampaign(t, k, start(t), false)
		want := c.least(int(length / time.Second)) // a run whose processes or faults stood still proves nothing
		r := c.run(length, want)
		require.Empty(t, r.found.Overlaps, "two holders")
		require.Empty(t, r.found.Disorder, "fences out of order")
		require.Empty(t, r.lacks(want), "too little has happened")
	})
}

// RunControl makes the same runs with a lock that does not tell of losses. The check must find
// that.
func RunControl(t *testing.T, k locktest.Kind) {
	eachSite(t, func(t *testing.T, start func(*testing.T) *site) {
		r := newCampaign(t, k, start(t), true).run(3*time.Second, map[string]int{"overlaps": 1})
		require.NotEmpty(t, r.found.Overlaps, "the check does not find a lock that does not exclude")
	})
}

func eachSite(t *testing.T, run func(*testing.T, func(*testing.T) *site)) {
	for _, s := range sites {
		t.Run(s.name, func(t *testing.T) {
			locktest.InTestAll(t)
			if s.name != "standalone" {
				t.Parallel() // much of the time is that of failovers
			}
			run(t, s.start)
		})
	}
}

// SoakTime is SOAK_TIME, or else the usual time.
func SoakTime(t *testing.T, usual time.Duration) time.Duration {
	if s := os.Getenv("SOAK_TIME"); s != "" {
		var err error
		usual, err = time.ParseDuration(s)
		require.NoError(t, err, "SOAK_TIME")
	}
	return usual
}

// AtMost is for how long a run goes on when too little happens on a slow machine.
func AtMost(length time.Duration) time.Duration { return max(9*length, 15*time.Minute) }

// SoakSeed is SOAK_SEED, or else a random one, which it logs.
func SoakSeed(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if s := os.Getenv("SOAK_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "SOAK_SEED")
	}
	t.Logf("seed: SOAK_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// campaign is one run on one site.
type campaign struct {
	t      *testing.T
	site   *site
	turns  bool // no other goes before the one that has the turn, which may be hit now
	random *rand.Rand
	file   string
	all    []*victim
	watch  *watch
	next   []int          // the servers' faults that come next
	faults map[string]int // of the servers, by kind
}

func newCampaign(t *testing.T, k locktest.Kind, s *site, broken bool) *campaign {
	if k.Readers != nil { // a free key waits for a second for those that were killed as they wished for it
		s.keys *= 8
	}
	c := &campaign{
		t: t, site: s, turns: k.Fair || k.Readers != nil, random: SoakSeed(t), file: filepath.Join(t.TempDir(), "records"),
		watch: newWatch(t, s), faults: map[string]int{},
	}
	t.Cleanup(c.watch.close)
	require.NoError(t, os.WriteFile(c.file, nil, 0o600))
	for i := range exclusionProcesses {
		ways := locktest.Processes(s.servers).Behind(t)
		o := orders{
			Addrs: s.addrs, MasterSet: s.masterSet, Ways: map[string]string{}, File: c.file,
			Lease: s.lease, Longest: s.longest, Long: s.long, Keys: s.keys, Reads: k.Readers != nil && !broken, Broken: broken,
		}
		if broken {
			o.Long *= 4 // so that each failover finds some
		}
		for j, p := range ways.All {
			o.Ways[s.servers[j].Addr()] = p.Addr()
		}
		v := &victim{
			t: t, name: strconv.Itoa(i), orders: o, random: rand.New(rand.NewPCG(c.random.Uint64(), 0)), beat: s.beat, ways: ways,
			died: map[string]time.Duration{}, faults: map[string]int{},
		}
		v.start()
		c.all = append(c.all, v)
	}
	return c
}

// run makes the campaign for that long, and for as long as AtMost says until there was what
// is wanted. It ends when something is found.
func (c *campaign) run(length time.Duration, want map[string]int) result {
	began, passed := time.Now(), time.Duration(0)
	for part := length; ; part = max(length-passed, length/4) {
		c.suffer(min(part, time.Minute))
		r := c.result(false)
		passed = time.Since(began)
		if r.found.any() || passed >= AtMost(length) || passed >= length && r.lacks(want) == "" {
			break
		}
		c.t.Logf("%v: %v", passed.Round(time.Second), r)
	}
	for _, v := range c.all {
		v.child.Say("stop")
	}
	for _, v := range c.all {
		v.child.Await()
	}
	client := c.site.open(c.t)
	for _, key := range keyNames(c.site.keys) { // those of the killed expire
		locktest.Await(c.t, func() bool {
			n, err := client.Do(c.t.Context(), client.B().Exists().Key(key).Build()).ToInt64()
			return err == nil && n == 0
		})
	}
	r := c.result(true)
	c.t.Logf("verdict after %v: %v", time.Since(began).Round(time.Second), r)
	return r
}

// suffer brings faults upon processes and servers for that long.
func (c *campaign) suffer(length time.Duration) {
	end := time.Now().Add(length)
	var work sync.WaitGroup
	for _, v := range c.all {
		work.Go(func() { v.suffer(end) })
	}
	for time.Sleep(UpTo(c.random, c.site.pace)); time.Now().Before(end); time.Sleep(UpTo(c.random, c.site.pace)) {
		if len(c.next) == 0 { // dealt like cards, so that a run of some length has each
			c.next = c.random.Perm(len(c.site.faults))
		}
		f := c.site.faults[c.next[0]]
		c.next = c.next[1:]
		f.do(UpTo(c.random, 2*c.site.beat))
		c.faults[f.name]++
		c.watch.settled()
	}
	work.Wait()
}

// result is what a campaign has brought about.
type result struct {
	Records
	found     Breaches
	faults    map[string]int
	failovers int
}

func (c *campaign) result(over bool) result {
	c.watch.settled()
	faults, died := maps.Clone(c.faults), map[string]time.Duration{}
	for _, v := range c.all {
		maps.Copy(died, v.died)
		for kind, n := range v.faults {
			faults[kind] += n
		}
	}
	data := locktest.Must(os.ReadFile(c.file))(c.t)
	run := locktest.Must(ReadRecords(data, died, over))(c.t)
	failovers := c.watch.failovers()
	return result{run, Check(run.Intervals, failovers...), faults, len(failovers)}
}

func (r result) String() string {
	return Verdict(r.Records, r.found, r.faults) + fmt.Sprintf(", %d failovers, which explain %d overlaps", r.failovers, r.found.Explained)
}

// Verdict says in a line what has happened, and what was found.
func Verdict(r Records, found Breaches, faults map[string]int) string {
	total, kinds := 0, []string{}
	for _, kind := range slices.Sorted(maps.Keys(faults)) {
		total += faults[kind]
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, faults[kind]))
	}
	return fmt.Sprintf("%d grants, %d operations checked, %d overlaps, %d fences out of order; %d holders killed, leases lost %v; %d faults: %s",
		len(r.Intervals), r.Operations, len(found.Overlaps), len(found.Disorder), r.Killed, r.Losses, total, strings.Join(kinds, ", "))
}

// least is what has to happen in so many seconds: with the runs on a quorum 600 faults and
// 20 000 grants in all of make test-all.
func (c *campaign) least(seconds int) map[string]int {
	want := map[string]int{"faults": 4 * seconds, "grants": c.site.grants * seconds, "killed": seconds / 10, "lost": seconds / 10}
	if c.turns {
		want["grants"] /= 2
	}
	for _, kind := range []string{"kill", "pause", "cut"} {
		want[kind] = seconds / 8
	}
	for _, f := range c.site.faults {
		want[f.name] = seconds / 20
	}
	return want
}

// lacks says of what there was too little.
func (r result) lacks(want map[string]int) string {
	did := maps.Clone(r.faults)
	for _, n := range r.faults {
		did["faults"] += n
	}
	did["grants"], did["killed"], did["lost"], did["overlaps"] = len(r.Intervals), r.Killed, r.Lost(), len(r.found.Overlaps)
	for what, n := range want {
		if did[what] < n {
			return fmt.Sprintf("%s: %d of %d", what, did[what], n)
		}
	}
	return ""
}

// victim is the place of one process of a campaign. One goroutine's own, by turns.
type victim struct {
	t      *testing.T
	name   string // of the place; its processes are name.1, name.2, …
	orders orders
	random *rand.Rand
	beat   time.Duration
	ways   *locktest.Proxies // to the servers
	child  *locktest.Child
	starts int
	died   map[string]time.Duration // when a process was gone
	faults map[string]int           // by kind
}

func (v *victim) start() {
	v.starts++
	v.orders.Process, v.orders.Seed = v.name+"."+strconv.Itoa(v.starts), v.random.Uint64()
	text := locktest.Must(json.Marshal(v.orders))(v.t)
	v.child = locktest.StartChild(v.t, "exclusion", string(text))
	v.child.Expect("ready")
}

// suffer brings one fault after the other upon the process.
func (v *victim) suffer(end time.Time) {
	cut := fault{"cut", func(time.Duration) { v.ways.Cut() }} // takes no time
	kinds := []fault{cut, cut, cut, cut, {"kill", v.kill}, {"pause", v.pause}}
	for time.Now().Before(end) {
		time.Sleep(UpTo(v.random, v.beat))
		kind := kinds[v.random.IntN(len(kinds))]
		kind.do(UpTo(v.random, 2*v.beat))
		v.faults[kind.name]++
	}
}

// UpTo is a random time.
func UpTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

// kill kills the process, every other time while it stands still.
func (v *victim) kill(d time.Duration) {
	if v.random.IntN(2) == 0 {
		v.child.Pause()
		time.Sleep(d)
	}
	v.child.Kill()
	v.died[v.orders.Process] = locktest.Clock()
	v.start()
}

func (v *victim) pause(d time.Duration) {
	v.child.Pause()
	time.Sleep(d)
	v.child.Resume()
}

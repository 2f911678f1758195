package exclusion

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const exclusionProcesses = 4

// Run has four processes of 16 goroutines each compete for few keys
// while they are killed, paused and cut off at random, and checks that the
// leases of a key never overlapped and that their fences grew; of a fair lock also
// that they were granted in the order of the queue. It lasts 20 s, 5 s in short tests, or
// as long as EXCLUSION_TIME says, and up to nine times as long, until enough has happened;
// EXCLUSION_SEED repeats the faults of a run.
func Run(t *testing.T, d Kind) {
	length := 20 * time.Second
	if testing.Short() {
		length = 5 * time.Second
	}
	if s := os.Getenv("EXCLUSION_TIME"); s != "" {
		var err error
		length, err = time.ParseDuration(s)
		require.NoError(t, err, "EXCLUSION_TIME")
	}
	// A run whose processes or faults stood still proves nothing.
	seconds := int(length / time.Second)
	want := least{grants: 250 * seconds, killed: seconds / 10, lost: seconds / 10}
	if d.Fair { // no other goes before the one that has the turn, which may be hit now
		want.grants = 50 * seconds
	}
	run, faults := exclusionRun(t, d, length, want)
	found := Check(run.Intervals)
	require.Empty(t, found.Overlaps, "two holders")
	require.Empty(t, found.Disorder, "fences out of order")

	require.GreaterOrEqual(t, len(run.Intervals), want.grants, "grants")
	total := 0
	for kind, n := range faults {
		total += n
		require.GreaterOrEqual(t, n, seconds/4, kind)
	}
	require.GreaterOrEqual(t, total, 5*seconds/2, "faults")
	require.GreaterOrEqual(t, run.Killed, want.killed, "holders killed")
	require.GreaterOrEqual(t, run.Lost(), want.lost, "leases lost")
}

// RunControl makes the same run, for 3 s and up to ten times, with a
// lock that now and then does not exclude. The check must find that.
func RunControl(t *testing.T, d Kind) {
	for range 10 {
		run, _ := exclusionRun(t, d, 3*time.Second, least{}, "broken")
		if len(Check(run.Intervals).Overlaps) > 0 {
			return
		}
	}
	require.Fail(t, "the check does not find a lock that does not exclude")
}

// least is what has to happen in a run.
type least struct{ grants, killed, lost int }

func (l least) happened(r Records) bool {
	return len(r.Intervals) >= l.grants && r.Killed >= l.killed && r.Lost() >= l.lost
}

// exclusionRun returns what was recorded, and how many faults of each kind there
// were.
func exclusionRun(t *testing.T, d Kind, length time.Duration, want least, args ...string) (Records, map[string]int) {
	seed := rand.Uint64()
	if s := os.Getenv("EXCLUSION_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "EXCLUSION_SEED")
	}
	t.Logf("seed: EXCLUSION_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	server := redistest.Start(t)
	var keys []string
	for i := range exclusionKeys {
		keys = append(keys, Key(i))
	}
	order := newOrderCheck(keys...)
	seen := func() {}
	if d.Fair {
		seen = server.Monitor(t, order.see)
	}
	file := filepath.Join(t.TempDir(), "records")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	all := make([]*victim, exclusionProcesses)
	for i := range all {
		all[i] = &victim{
			t: t, name: strconv.Itoa(i), file: file, args: args,
			random: rand.New(rand.NewPCG(random.Uint64(), 0)),
			proxy:  redistest.NewProxy(t, server.Addr()),
			died:   map[string]time.Duration{}, faults: map[string]int{},
		}
		all[i].start()
	}
	suffer := func(length time.Duration) {
		end := time.Now().Add(length)
		var work sync.WaitGroup
		for _, v := range all {
			work.Go(func() { v.suffer(end) })
		}
		work.Wait()
	}
	suffer(length)
	recorded := func(over bool) Records {
		died := map[string]time.Duration{}
		for _, v := range all {
			maps.Copy(died, v.died)
		}
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		run, err := ReadRecords(data, died, over)
		require.NoError(t, err)
		return run
	}
	for more := length / 4; more <= 8*length && !want.happened(recorded(false)); more += length / 4 {
		suffer(length / 4)
	}

	for _, v := range all {
		v.child.Say("stop")
	}
	faults := map[string]int{}
	for _, v := range all {
		v.child.Await()
		for kind, n := range v.faults {
			faults[kind] += n
		}
	}
	for i := range exclusionKeys { // those of the killed expire
		Await(t, func() bool { return !Exists(t, server, Key(i)) })
	}
	seen()
	require.Empty(t, order.wrong[:min(3, len(order.wrong))])
	run := recorded(true)
	t.Logf("%d grants, %d holders killed, leases lost: %v, faults: %v", len(run.Intervals), run.Killed, run.Losses, faults)
	return run, faults
}

// victim is the place of one process of a run. One goroutine's own, by turns.
type victim struct {
	t      *testing.T
	name   string // of the place; its processes are name.1, name.2, …
	file   string
	args   []string
	random *rand.Rand
	proxy  *redistest.Proxy
	child  *Child
	starts int
	died   map[string]time.Duration // when a process was gone
	faults map[string]int           // by kind
}

func (v *victim) process() string { return v.name + "." + strconv.Itoa(v.starts) }

func (v *victim) start() {
	v.starts++
	seed := strconv.FormatUint(v.random.Uint64(), 10)
	v.child = StartChild(v.t, "exclusion", append([]string{v.proxy.Addr(), v.file, v.process(), seed}, v.args...)...)
	v.child.Expect("ready")
}

// suffer brings one fault after the other upon the process.
func (v *victim) suffer(end time.Time) {
	kinds := []struct {
		name string
		do   func(time.Duration)
	}{
		{"kill", v.kill},
		{"pause", v.pause},
		{"cut", func(time.Duration) { v.proxy.Cut() }},
		{"refuse", v.refuse},
		{"hold requests", func(d time.Duration) { v.hold(v.proxy.HoldRequests, d) }},
		{"hold replies", func(d time.Duration) { v.hold(v.proxy.HoldReplies, d) }},
	}
	for time.Now().Before(end) {
		time.Sleep(v.upTo(exclusionLease))
		kind := kinds[v.random.IntN(len(kinds))]
		kind.do(v.upTo(2 * exclusionLease))
		v.faults[kind.name]++
	}
}

func (v *victim) upTo(most time.Duration) time.Duration {
	return time.Duration(v.random.Int64N(int64(most)))
}

// kill kills the process, every other time while it stands still.
func (v *victim) kill(d time.Duration) {
	if v.random.IntN(2) == 0 {
		v.child.Pause()
		time.Sleep(d)
	}
	v.child.Kill()
	v.died[v.process()] = Clock()
	v.start()
}

func (v *victim) pause(d time.Duration) {
	v.child.Pause()
	time.Sleep(d)
	v.child.Resume()
}

// refuse cuts the process off, and keeps it from coming back for a while.
func (v *victim) refuse(d time.Duration) {
	v.proxy.Refuse(true)
	v.proxy.Cut()
	time.Sleep(d)
	v.proxy.Refuse(false)
}

// hold keeps the process's requests, or Redis' replies, on their way.
func (v *victim) hold(side func(bool), d time.Duration) {
	side(true)
	time.Sleep(d)
	side(false)
}

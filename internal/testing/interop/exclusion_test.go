package interop

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
)

// The shape of an exclusion run: four processes of each language, each at plain and
// at fair locks; half of them at plain locks without fences.
const (
	exclusionAgents  = 4
	exclusionThreads = 2 // of a process, at each kind of lock
	exclusionTime    = 30 * time.Second
	clusterTime      = 20 * time.Second // of that on a Redis Cluster
)

var (
	// On a Redis Cluster of three, each master has one of each kind.
	plainKeys        = []string{"plain0", "plain1", "{b}plain2"}
	fairKeys         = []string{"fair0", "fair{a}1", "{b}fair2"}
	exclusionOptions = options{Lease: time.Second, WaiterTTL: 400 * time.Millisecond, GrantLease: 400 * time.Millisecond}
)

// G1 over both languages, while processes are killed and stopped at random: no two
// hold a lock at once, by the clock that all processes share, and tokens grow.
// EXCLUSION_TIME sets for how long.
func TestG1_Exclusion(t *testing.T) { onServerAndCluster(t, testExclusion) }

func testExclusion(t *testing.T, s redis) {
	length := exclusionTime
	if s.clustered() {
		length = clusterTime
	}
	if wanted := os.Getenv("EXCLUSION_TIME"); wanted != "" {
		var err error
		length, err = time.ParseDuration(wanted)
		require.NoError(t, err, "EXCLUSION_TIME")
	}
	file := filepath.Join(t.TempDir(), "records")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var all []*victim
	for i := range exclusionAgents {
		for _, lang := range twoAgents {
			all = append(all, &victim{
				t: t, s: s, file: file, lang: lang, place: i, died: map[string]time.Duration{}, faults: map[string]int{},
			})
		}
	}
	for _, v := range all {
		v.launch()
	}
	for _, v := range all {
		v.begin()
	}
	for _, v := range all { // until each has begun
		v.agent.do(t, command{Op: "ping"})
	}
	end := time.Now().Add(length)
	var work sync.WaitGroup
	for _, v := range all {
		work.Go(func() { v.suffer(end) })
	}
	work.Wait()
	require.False(t, t.Failed())
	for _, v := range all {
		v.agent.do(t, command{Op: "stop"})
	}
	died, faults := map[string]time.Duration{}, map[string]int{}
	for _, v := range all {
		for _, a := range v.working {
			require.Empty(t, answerOf(t, a).Error)
		}
		maps.Copy(died, v.died)
		for kind, n := range v.faults {
			faults[kind] += n
		}
	}
	for _, key := range append(plainKeys, fairKeys...) {
		locktest.Await(t, func() bool { return number(t, s, "EXISTS", key) == 0 }) // those of the killed expire
	}
	data := readRecords(t, file, died)
	holds := map[string]int{}
	for _, g := range grants.FindAllSubmatch(data, -1) {
		holds[fmt.Sprintf("%s %s", g[1], g[2])]++
	}
	t.Logf("holds %v, faults %v", holds, faults)

	// A run in which one side, or the faults, stood still proves nothing.
	seconds := int(length / time.Second)
	for _, lang := range twoAgents {
		require.Greater(t, holds[lang+" plain"], seconds, lang)
		require.Greater(t, holds[lang+" fair"], seconds, lang)
		require.GreaterOrEqual(t, faults[lang+" kill"], 1, lang)
		require.GreaterOrEqual(t, faults[lang+" pause"], max(1, seconds/5), lang)
	}
}

// grants finds the language and the kind of the locks in the records of exclusion.Recorder.
var grants = regexp.MustCompile(`(?m)^G (Go|Java)\S* \S*(plain|fair)`)

// readRecords returns what all processes of a run have recorded, and requires that no two
// held a lock at once. died says when processes were killed.
func readRecords(t testing.TB, file string, died map[string]time.Duration) []byte {
	t.Helper()
	data := locktest.Must(os.ReadFile(file))(t)
	run := locktest.Must(exclusion.ReadRecords(data, died, true))(t)
	found := exclusion.Check(run.Intervals)
	require.Empty(t, found.Overlaps, "two holders")
	require.Empty(t, found.Disorder, "fences out of order")
	return data
}

// Java's System.nanoTime() reads the same clock as ours.
func TestClock(t *testing.T) {
	_, agents := start(t, options{}, twoAgents...)
	for _, a := range agents {
		for range 20 {
			before := locktest.Clock()
			reply := a.do(t, command{Op: "ping"}).Time
			after := locktest.Clock()
			require.True(t, int64(before) <= reply && reply <= int64(after), "%d is not from %d to %d in %s", reply, before, after, a.lang)
		}
	}
}

// victim is the place of one process of a run. One goroutine's own, by turns.
type victim struct {
	t       *testing.T
	s       redis
	file    string
	lang    string
	place   int
	starts  int
	agent   *agent
	working []<-chan answer
	died    map[string]time.Duration // when a process was gone
	faults  map[string]int           // by language and kind
}

func (v *victim) name() string { return fmt.Sprintf("%s%d.%d", v.lang, v.place, v.starts) }

func (v *victim) launch() {
	v.starts++
	o := exclusionOptions
	if none := time.Duration(0); v.place < exclusionAgents/2 {
		o.Handover = &none
	}
	v.agent = startAgent(v.t, v.lang, v.s.addrs, o)
}

// begin has the process work; it need not be up yet.
func (v *victim) begin() {
	v.working = nil
	kind := []string{"plain", "fenced"}[v.place%2]
	for i := range exclusionThreads {
		for kind, keys := range map[string][]string{kind: plainKeys, "fair": fairKeys} {
			v.working = append(v.working, v.agent.send(command{
				Op: "work", Thread: fmt.Sprint(kind, i), Kind: kind, Keys: keys, File: v.file, Name: v.name(),
			}))
		}
	}
}

// suffer kills and stops the process by turns, Java less often, as it takes seconds
// to come back. A stop is sometimes longer than the lease, so that it loses its locks.
// One process of each language is killed first.
func (v *victim) suffer(end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(upTo(3 * time.Second))
		pause := upTo(exclusionOptions.Lease * 3 / 2)
		if one := map[string]int{inGo: 4, inJava: 8}[v.lang]; rand.IntN(one) > 0 && (v.place > 0 || v.starts > 1) {
			v.agent.pause()
			time.Sleep(pause)
			v.agent.resume()
			v.faults[v.lang+" pause"]++
			continue
		}
		v.agent.kill()
		v.died[v.name()] = locktest.Clock()
		v.launch()
		v.begin()
		<-v.agent.send(command{Op: "ping"}) // the time that it takes to start is none to suffer
		v.faults[v.lang+" kill"]++
	}
}

func upTo(most time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(most))) }

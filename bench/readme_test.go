package main

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The README tells what the raw figures that are kept say, and nothing else.
func TestReadmeFromRaw(t *testing.T) {
	text, err := os.ReadFile(readmeFile)
	require.NoError(t, err)
	_, block, _, ok := cutReadme(string(text))
	require.True(t, ok, "the README has no lines %q and %q, each with an empty line inside", readmeBegin, readmeEnd)
	r, err := loadReport(resultsDir)
	require.NoError(t, err)
	require.Equal(t, r.readme(), block, "go run . -redraw")
	for _, b := range briefs() {
		for _, m := range r.Workloads {
			if m.Name == b.workload && b.beaten(m) {
				why := func(s saying) bool { return !s.always && slices.Contains(s.works, b.work) }
				require.True(t, slices.ContainsFunc(sayings, why), "a rival is better: %s; sayings must tell why", b.work)
			}
		}
	}
}

// Each row is of a workload and of subjects that there are; each workload that has a
// rival has a row, each text one to which it belongs.
func TestReadmeRows(t *testing.T) {
	all := make(map[string]workload)
	for _, w := range workloads() {
		all[w.name] = w
	}
	for _, b := range briefs() {
		w, ok := all[b.workload]
		require.True(t, ok, b.workload)
		var names []string
		for _, s := range w.subjects {
			names = append(names, s.name)
		}
		require.Contains(t, names, b.ours, b.workload)
		if b.floor != "" {
			require.Contains(t, names, b.floor, b.workload)
		}
	}
	var works []string
	rivals := make(map[string][]string) // of the rows of a workload
	for _, b := range briefs() {
		works = append(works, b.work)
		rivals[b.workload] = append(rivals[b.workload], b.others()...)
	}
	for _, w := range all {
		for _, s := range w.subjects {
			shown := s.name
			if shown == redsyncGoRedisName { // README has its faster setting
				shown = redsyncName
			}
			require.True(t, !s.rival || slices.Contains(rivals[w.name], shown), "%s has no row for %s", w.name, shown)
		}
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(works))), len(works), "rows of one name")
	for _, s := range sayings {
		require.Subset(t, works, s.works)
	}
}

// A cell is how many times better ours is, whether more or less is better; where a
// rival is, and where one failed, that is marked.
func TestReadmeTable(t *testing.T) {
	own, many := uncontended(64), waiting(1000)
	r := report{Commit: "abc", Machine: "a machine", Versions: "Go", Rounds: 4, Time: "2s", Workloads: []measured{
		{workload: own, Name: own.name, Rounds: []round{
			{holdfastName: {"cycles/s": 900}, floorName: {"cycles/s": 1000}, redsyncName: {"cycles/s": 300}},
			{holdfastName: {"cycles/s": 1000}, floorName: {"cycles/s": 1000}, redsyncName: {"cycles/s": 200}, etcdName: {"cycles/s": 0}},
			{holdfastName: {"cycles/s": 800}, floorName: {"cycles/s": 1000}},
		}},
		{workload: many, Name: many.name, Rounds: []round{
			{holdfastName: {waitServed: 3}, rueidisName: {waitServed: 60}, redissonName: {waitServed: 1.5}, redissonSpinName: {waitServed: 2}},
		}},
	}}
	table := r.readme()
	require.Contains(t, table, "Measured on 0001-01-01 at commit abc: a machine; Go.\nAt most 4 rounds of 2s for each")
	require.Contains(t, table, "\n| own keys, 64 | 900 | 0.900 | – | 4 | – | ∞ | – | – | – |\n")
	require.Contains(t, table, "\n| time to serve 1000 waiters | 3 ms | – | 20 | – | – | – | – | **0.500 ▼** | **0.667 ▼** |\n")
	require.Equal(t, 2, strings.Count(table, "\n| own keys")+strings.Count(table, "\n| time"), "what was not measured has no row")
	require.Contains(t, table, "\nNot measured in this run: own keys, 1 goroutine; own keys, 512; one key, 64 in one process;")
	require.NotContains(t, table, failed)
	require.NotContains(t, table, "again")

	r.Workloads[1].Apart = "2026-11-23 at commit def"
	r.LeftOut = []string{"etcd: it is not there"}
	r.Workloads[0].Notes = []string{"redsync failed in round 3: stuck", "redislock failed in round 1: stuck"}
	r.Workloads[1].Notes = []string{"holdfast failed in round 2: late", "Redisson spin failed in round 1: lost"}
	table = r.readme()
	require.Contains(t, table, "\n| own keys, 64 | 900 | 0.900 | – | 4† | –† | ∞ | – | – | – |\n")
	require.Contains(t, table, "\n| time to serve 1000 waiters | 3 ms† | – | 20 | – | – | – | – | **0.500 ▼** | **0.667 ▼**† |\n")
	require.Contains(t, table, "\n† Waiters left asleep, or an error, in some rounds: see `bench/results/table.md`.")
	require.Contains(t, table, "\nLeft out: etcd: it is not there\n")
	require.Contains(t, table, "\nMeasured again on 2026-11-23 at commit def: time to serve 1000 waiters.\n")

	before, block, after, ok := cutReadme("Speed:\n" + readmeBegin + "\n\nold\n\n" + readmeEnd + "\nrest\n")
	require.True(t, ok)
	require.Equal(t, "old\n", block)
	again := before + table + after
	_, block, _, ok = cutReadme(again)
	require.True(t, ok)
	require.Equal(t, table, block)
	require.True(t, strings.HasSuffix(again, "\nrest\n"))
	_, _, _, ok = cutReadme("no marks")
	require.False(t, ok)
}

// What is not of the main workloads has a row where a rival is better, and only there;
// a reason is said only there, a remark wherever its row is.
func TestReadmeSays(t *testing.T) {
	few, long, tries := uncontended(8), processes(8, 8, 20*time.Millisecond), refused(64)
	of := func(w workload, ours, theirs float64) measured {
		return measured{workload: w, Name: w.name, Rounds: []round{{holdfastName: {"cycles/s": ours}, redissonSpinName: {"cycles/s": theirs}}}}
	}
	const why, remark = "\n- ▼ one key, 8 processes × 8, 20 ms each: a section", "\n- try-lock refused, 64: while"
	r := report{Workloads: []measured{of(few, 3, 3), of(long, 3, 3), of(tries, 3, 3)}}
	require.NotContains(t, r.readme(), "\n| own keys, 8 |")
	require.NotContains(t, r.readme(), why)
	require.Contains(t, r.readme(), remark)
	r = report{Workloads: []measured{of(few, 3, 4), of(long, 3, 4)}}
	require.Contains(t, r.readme(), "\n| own keys, 8 | 3 | – | – | – | – | – | – | – | **0.750 ▼** |\n")
	require.Contains(t, r.readme(), why)
	require.NotContains(t, r.readme(), remark)
}

// A difference that happens to be less than nothing is nothing, on either side.
func TestReadmeDifference(t *testing.T) {
	b := brief{ours: "a", figure: "ms more", less: true}
	beside := func(ours, theirs float64) measured {
		return measured{Rounds: []round{{"a": {"ms more": ours}, redsyncName: {"ms more": theirs}}}}
	}
	require.Equal(t, "**0 ▼**", b.cell(beside(50, -0.1), redsyncName))
	require.Equal(t, "∞", b.cell(beside(-0.1, 50), redsyncName))
	require.Equal(t, "–", b.cell(beside(-0.1, -0.2), redsyncName))
}

// Who promises less does not count for the target of those who promise as much.
func TestPeers(t *testing.T) {
	r := round{holdfastName: {"cycles/s": 6}, redsyncName: {"cycles/s": 12}, zookeeperName: {"cycles/s": 3}, etcdName: {"cycles/s": 2}}
	require.InDelta(t, 0.5, beside(holdfastName, "cycles/s")(r), 0)
	require.InDelta(t, 2, besidePeers(holdfastName, "cycles/s")(r), 0)
	require.True(t, math.IsNaN(besidePeers(holdfastName, "cycles/s")(round{holdfastName: {"cycles/s": 6}, redsyncName: {"cycles/s": 12}})))
	for _, peer := range peers() {
		require.True(t, isRival(peer), peer)
	}
}

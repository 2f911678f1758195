package report

import (
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// kept are the results that are in the repository.
const kept = "../results"

func load(t *testing.T) *Results {
	t.Helper()
	r, err := Load(kept)
	require.NoError(t, err)
	return r
}

// The table that is kept and the README match the figures.
func TestKeptPagesAreOfTheFigures(t *testing.T) {
	r := load(t)
	table, err := os.ReadFile(filepath.Join(kept, tableFile))
	require.NoError(t, err)
	require.Equal(t, r.Markdown(), string(table), "go run . -redraw")

	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, block, _, err := cutReadme(string(text))
	require.NoError(t, err)
	require.Equal(t, r.Readme(), block, "go run . -redraw")
}

// Where a rival is ahead, the README or docs/benchmarks.md says why.
func TestReasons(t *testing.T) {
	r := load(t)
	text, err := os.ReadFile("../../docs/benchmarks.md")
	require.NoError(t, err)
	_, why, ok := strings.Cut(string(text), "## Where rivals are ahead")
	require.True(t, ok)
	for _, w := range r.Workloads {
		if len(w.ahead()) > 0 {
			require.Contains(t, why, "`"+w.Name+"`")
		}
	}
	for _, row := range readmeRows {
		for _, s := range r.find(row.workload).ahead() {
			require.Contains(t, row.why, s, row.work)
		}
	}
}

// Each target, each row of the README and each picture is of a workload and of subjects that were measured.
func TestTargetsAreOfTheFigures(t *testing.T) {
	r := load(t)
	for _, want := range targets {
		known := false
		for _, w := range r.Workloads {
			for _, one := range w.targets() {
				known = known || one == want
			}
		}
		require.True(t, known, "%v", want)
	}
	for _, row := range readmeRows {
		require.NotEmpty(t, r.find(row.workload).Rounds, row.workload)
	}
	for _, name := range shown {
		require.NotEmpty(t, r.find(name).Rounds, name)
	}
}

func TestTable(t *testing.T) {
	w := Workload{
		Name: "uncontended/8", Measured: "a day", Subjects: []string{"holdfast", "floor", "redsync"},
		Rounds: []Round{
			{"holdfast": {speed: 12_000, commands: 2}, "floor": {speed: 12_000}, "redsync": {speed: 6_000}},
			{"holdfast": {speed: 1_800_000, commands: 2}, "floor": {speed: 2_000_000}},
			{"holdfast": {speed: 400, commands: 3}, "floor": {speed: 800}, "redsync": {speed: 100}},
		},
		Notes: []string{"redsync failed in round 2: stuck"}, Stolen: 0.123,
	}
	require.Equal(t, `
## uncontended/8

Measured on a day.

| | better | cycles/s | commands |
|---|---:|---:|---:|
| holdfast | 1 | 12.0 k | 2 |
| floor | 0.900 | 12.0 k | – |
| redsync | 3 | 3050 | – |

| target | | median | min – max | |
|---|---|---:|---:|---|
| holdfast: cycles/s ÷ floor | ≥ 0.900 | 0.900 | 0.500 – 1 | ✓ |
| holdfast: cycles/s ÷ best rival | ≥ 1.20 | 3 | 2 – 4 | ✓ |
| holdfast: commands/cycle | ≤ 2 | 2 | 2 – 3 | ✓ |

redsync failed in round 2: stuck

The machine's host took up to 12 % of the processors' time for others.
`, w.Markdown())

	r := Results{Workloads: []Workload{w}}
	require.NotContains(t, r.Markdown(), "## Targets that are missed")
	require.NotContains(t, r.Markdown(), "## Where a rival is ahead")
	w.Rounds = []Round{{"holdfast": {speed: 1}, "floor": {speed: 2}, "redsync": {speed: 4}}}
	r = Results{Workloads: []Workload{w}}
	require.Contains(t, r.Markdown(), "\n- uncontended/8: holdfast: cycles/s ÷ floor is 0.500, to be ≥ 0.900\n")
	require.Contains(t, r.Markdown(), "\n- uncontended/8: redsync\n")
}

// Where less is better, the factor is inverted. A difference below 0 counts as 0.
func TestBetter(t *testing.T) {
	of := func(ours, theirs float64) float64 {
		return Workload{Subjects: []string{"fair", "redsync"}, Rounds: []Round{{"fair": {recovered: ours}, "redsync": {recovered: theirs}}}}.better("redsync")
	}
	require.InDelta(t, 2, of(50, 100), 0)
	require.InDelta(t, 0, of(50, -0.1), 0)
	require.True(t, math.IsInf(of(-0.1, 50), 1))
	require.True(t, math.IsNaN(of(-0.1, -0.2)))
}

// The best rival is the fastest, or the one that needs least. A rival that promises less is no peer.
func TestBest(t *testing.T) {
	r := Round{"holdfast": {speed: 6}, "redsync": {speed: 12, served: 3}, "zookeeper": {speed: 3, served: 4}, "etcd": {speed: 0}}
	require.InDelta(t, 12, best(r, speed, rivals), 0)
	require.InDelta(t, 3, best(r, speed, peers), 0)
	require.InDelta(t, 3, best(r, served, rivals), 0)
	require.True(t, math.IsNaN(best(Round{"holdfast": {speed: 6}}, speed, rivals)))
}

func TestMedian(t *testing.T) {
	of := func(values ...float64) float64 {
		w := Workload{}
		for _, v := range values {
			w.Rounds = append(w.Rounds, Round{"a": {"x": v}})
		}
		return w.medianOf("a", "x")
	}
	require.InDelta(t, 3, of(5, 1, 3), 0)
	require.InDelta(t, 2.5, of(4, 1, 3, 2), 0)
	require.True(t, math.IsNaN(of()))
}

func TestReadme(t *testing.T) {
	own, many := readmeRows[0].workload, "waiting/1000"
	r := Results{Machine: "a machine", Rounds: 3, Workloads: []Workload{
		{Name: own, Measured: "a day", Subjects: []string{"holdfast", "redsync"}, Rounds: []Round{{"holdfast": {speed: 900}, "redsync": {speed: 800}}}},
		{
			Name: many, Subjects: []string{"holdfast", "redsync", "redislock"}, Notes: []string{"redislock failed in round 1: stuck"},
			Rounds: []Round{{"holdfast": {speed: 5, served: 3}, "redsync": {speed: 2, served: 60}}},
		},
	}}
	require.Contains(t, r.Readme(), "\n| own keys, 1 goroutine | **900** | – | 800 | – |\n")
	require.Contains(t, r.Readme(), "\n| 1000 waiters of one key, until all are served | **3 ms** | – | 60 ms | – † |\n")
	require.Contains(t, r.Readme(), "\n† ")
	require.NotContains(t, r.Readme(), "faster with redsync")
	r.Workloads[0].Rounds[0]["redsync"][speed] = 1000
	require.Contains(t, r.Readme(), "faster with redsync")

	file := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(file, []byte("# Speed\n\n"+readmeBegin+"old"+readmeEnd+"\nrest\n"), 0o600))
	for range 2 {
		require.NoError(t, r.IntoReadme(file))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "# Speed\n\n"+readmeBegin+r.Readme()+readmeEnd+"\nrest\n", string(text))
	}
	require.NoError(t, os.WriteFile(file, []byte("no marks"), 0o600))
	require.ErrorIs(t, r.IntoReadme(file), errNoMarks)
}

// A run of some workloads keeps the others of its folder. Both pictures are of what was measured.
func TestContinueAndSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	measured := func(name string, v float64) Workload {
		return Workload{Name: name, Subjects: []string{"holdfast", "etcd"}, Rounds: []Round{{"holdfast": {speed: v, "lock p99 µs": 3}, "etcd": {speed: 0}}}}
	}
	r := &Results{}
	require.NoError(t, r.Continue(dir))
	r.Put(measured(shown[0], 1))
	r.Put(measured("other", 2))
	require.NoError(t, r.Save(dir))
	r = &Results{Machine: "another"}
	require.NoError(t, r.Continue(dir))
	r.Put(measured(shown[0], 3))
	require.NoError(t, r.Save(dir))
	again, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, &Results{Machine: "another", Workloads: []Workload{measured(shown[0], 3), measured("other", 2)}}, again)
	for _, picture := range []string{"main.png", "waits.png"} {
		f, err := os.Open(filepath.Join(dir, picture))
		require.NoError(t, err)
		defer f.Close()
		drawn, err := png.Decode(f)
		require.NoError(t, err)
		require.Greater(t, drawn.Bounds().Dx(), 300)
	}
}

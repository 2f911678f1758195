package report

import (
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// kept are the results that are in the repository.
const kept = "../results"

// The table that is kept and the README match the figures.
func TestKeptPagesAreOfTheFigures(t *testing.T) {
	r := redistest.Must(Load(kept))(t)
	table := redistest.Must(os.ReadFile(filepath.Join(kept, tableFile)))(t)
	require.Equal(t, r.Markdown(), string(table), "go run . -redraw")

	text := redistest.Must(os.ReadFile("../../README.md"))(t)
	_, block, _, err := cutReadme(string(text))
	require.NoError(t, err)
	require.Equal(t, r.Readme(), block, "go run . -redraw")
}

// Where a rival is ahead, the README or docs/benchmarks.md says why.
func TestReasons(t *testing.T) {
	r := redistest.Must(Load(kept))(t)
	text := redistest.Must(os.ReadFile("../../docs/benchmarks.md"))(t)
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
	r := redistest.Must(Load(kept))(t)
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

// A difference below 0 counts as 0, a speed of 0 not at all. The kept figures have neither.
func TestZero(t *testing.T) {
	better := func(ours, theirs float64) float64 {
		return Workload{Subjects: []string{"fair", "redsync"}, Rounds: []Round{{"fair": {recovered: ours}, "redsync": {recovered: theirs}}}}.better("redsync")
	}
	require.InDelta(t, 0, better(50, -0.1), 0)
	require.True(t, math.IsInf(better(-0.1, 50), 1))
	require.True(t, math.IsNaN(better(-0.1, -0.2)))
	require.True(t, math.IsNaN(best(Round{"etcd": {speed: 0}}, speed, rivals)))
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
	require.Contains(t, r.Readme(), "\n| 1000 waiters of one key in one process, until all are served; holdfast: in memory | **3 ms** | – | 60 ms | – † |\n")
	require.Contains(t, r.Readme(), "\n† ")
	require.NotContains(t, r.Readme(), "as fast with redsync")
	r.Workloads[0].Rounds[0]["redsync"][speed] = 1000
	require.Contains(t, r.Readme(), "as fast with redsync")

	file := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(file, []byte("# Speed\n\n"+readmeBegin+"old"+readmeEnd+"\nrest\n"), 0o600))
	for range 2 {
		require.NoError(t, r.IntoReadme(file))
		require.Equal(t, "# Speed\n\n"+readmeBegin+r.Readme()+readmeEnd+"\nrest\n", string(redistest.Must(os.ReadFile(file))(t)))
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
	again := &Results{Machine: "another", Workloads: []Workload{measured(shown[0], 3), measured("other", 2)}}
	require.Equal(t, again, redistest.Must(Load(dir))(t))
	for _, picture := range []string{"main.png", "waits.png"} {
		f := redistest.Must(os.Open(filepath.Join(dir, picture)))(t)
		defer f.Close()
		require.Greater(t, redistest.Must(png.Decode(f))(t).Bounds().Dx(), 300)
	}
}

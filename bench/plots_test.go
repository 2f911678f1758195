package main

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each page is drawn twice, as a picture that can be read and with the names of
// whom it shows; what was not measured has no page.
func TestPlots(t *testing.T) {
	cycles := func(speed float64) sample {
		return sample{
			"cycles/s": speed, "commands/cycle": 2, "Jain of goroutines": 0.9,
			"lock p50 µs": 20, "lock p99 µs": 300, "lock p99.9 µs": 4000, "lock max µs": 50_000,
		}
	}
	r := report{Workloads: []measured{
		{workload: hot(64, 0), Rounds: []round{{holdfastName: cycles(2e6), redsyncName: cycles(0), etcdName: cycles(400)}}},
		{workload: queues(10, 100), Rounds: []round{{
			"queue of 10":  {"server CPU µs/cycle": 20, "inner commands/cycle": 18},
			"queue of 100": {"server CPU µs/cycle": 21, "inner commands/cycle": 18},
		}}},
	}}
	for i, w := range r.Workloads {
		r.Workloads[i].Name = w.workload.name
	}
	dir := t.TempDir()
	require.NoError(t, r.drawAll(dir))
	for page, names := range map[string][]string{
		"main":       {holdfastName, "2.00 M"},
		"throughput": {holdfastName, redsyncName, etcdName, "2.00 M"},
		"latency":    {holdfastName, redsyncName, etcdName, "p99.9"},
		"commands":   {holdfastName, redsyncName},
		"fairness":   {holdfastName, redsyncName},
		"queues":     {fairStraightName, "waiters"},
	} {
		f, err := os.Open(filepath.Join(dir, page+".png"))
		require.NoError(t, err, page)
		defer f.Close()
		picture, err := png.Decode(f)
		require.NoError(t, err, page)
		require.Greater(t, picture.Bounds().Dx(), 300, page)
		vectors, err := os.ReadFile(filepath.Join(dir, page+".svg"))
		require.NoError(t, err, page)
		for _, name := range names {
			require.Contains(t, string(vectors), name, page)
		}
		require.NotContains(t, string(vectors), zookeeperName, page)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 12)
	for _, f := range files {
		require.False(t, strings.HasPrefix(f.Name(), "held"), "nothing was held")
	}
}

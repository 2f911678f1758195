package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/bench/report"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A rival's server that does not start is an error that has its log. It is not tried again
// later and leaves no file. The rest is measured.
func TestServerThatDoesNotStart(t *testing.T) {
	needServer(t)
	var where string
	starts := 0
	libraries["none"] = &library{
		server: func(s *starter, _ string) *exec.Cmd {
			starts++
			where = s.TempDir()
			return exec.Command("sh", "-c", "echo no room; exit 1")
		},
		ready: func(string) error { return errors.New("not yet") },
	}
	defer delete(libraries, "none")
	w := workload{subjects: []subject{
		{name: "none", library: "none"},
		{name: "other", run: func(store, string, time.Duration) (report.Sample, error) { return report.Sample{"x": 1}, nil }},
	}}
	m, err := w.measure(2, time.Millisecond, io.Discard)
	require.Len(t, m.Notes, 2)
	require.Equal(t, []report.Round{{"other": {"x": 1}}, {"other": {"x": 1}}}, m.Rounds)
	require.Equal(t, 2, starts)
	require.ErrorIs(t, err, errNotStarted)
	require.ErrorContains(t, err, "no room")
	require.NoDirExists(t, where)
}

// A rival's server that ends is noted where it fails, and is there again for the next.
func TestServerThatEnds(t *testing.T) {
	needServer(t)
	starts := 0
	defer func(l *library) { libraries["etcd"] = l }(libraries["etcd"])
	libraries["etcd"] = &library{
		server: func(*starter, string) *exec.Cmd {
			starts++
			return exec.Command("sleep", "60")
		},
		ready: func(string) error { return nil },
	}

	defer stopOwnServers()
	w := workload{subjects: []subject{{name: "mortal", library: "etcd", run: func(st store, _ string, _ time.Duration) (report.Sample, error) {
		if starts == 1 {
			st.(*daemon).kill()
			return nil, errors.New("gone")
		}
		require.False(t, st.(*daemon).ended())
		return report.Sample{"x": 1}, nil
	}}}}
	m := redistest.Must(w.measure(3, time.Millisecond, io.Discard))(t)
	require.Equal(t, []string{"mortal failed in round 1: gone"}, m.Notes)
	require.Equal(t, []report.Round{{}, {"mortal": {"x": 1}}, {"mortal": {"x": 1}}}, m.Rounds)
	require.Equal(t, 2, starts)
}

// What fails ends neither the workload nor the run, which then fails at its end if it
// was one of ours; a Redis that has ended is there again for the next subject.
func TestFailuresEndNothing(t *testing.T) {
	needServer(t)
	fine := func(st store, _ string, _ time.Duration) (report.Sample, error) {
		_, err := st.(*deployment).masters[0].TryDo("PING")
		return report.Sample{"x": 1}, err
	}
	kills := func(st store, _ string, _ time.Duration) (report.Sample, error) {
		st.(*deployment).masters[0].Kill()
		return nil, io.ErrUnexpectedEOF
	}
	w := workload{name: "work", subjects: []subject{{name: "kills", run: kills}, {name: "fine", run: fine}}}
	m, err := w.measure(1, time.Millisecond, io.Discard)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, []report.Round{{"fine": {"x": 1}}}, m.Rounds)

	o := order{workloads: []workload{w, {name: "more", subjects: []subject{{name: "fine", run: fine}}}}, rounds: 1, out: t.TempDir()}
	require.ErrorIs(t, o.measure(io.Discard, io.Discard), io.ErrUnexpectedEOF)
	text := redistest.Must(os.ReadFile(filepath.Join(o.out, "raw.json")))(t)
	require.Contains(t, string(text), `"more"`)
	require.Contains(t, string(text), "kills failed in round 1")
}

// A server that restarts is at its address again, and knows nothing.
func TestRestart(t *testing.T) {
	s := emptyServer(t)
	s.masters[0].Do(t, "SET", "key", "value")
	before := infoOf(s.masters[0])
	require.NoError(t, s.restart())
	after := infoOf(s.masters[0])
	require.Equal(t, number(before, `tcp_port:(\d+)`), number(after, `tcp_port:(\d+)`))
	require.NotEqual(t, number(before, `process_id:(\d+)`), number(after, `process_id:(\d+)`))
	require.Zero(t, redistest.Must(s.masters[0].Do(t, "EXISTS", "key").AsInt64())(t))
}

func TestStolen(t *testing.T) {
	before := processors{20, 1000}
	require.InDelta(t, 0.25, processors{45, 1100}.stolenSince(before), 1e-9)
	require.Zero(t, before.stolenSince(before))
	require.Zero(t, processors{}.stolenSince(processors{}), "unknown")
}

// What the host disturbed is measured again, but not forever. The report says how much the
// host took from what counts.
func TestDisturbedIsMeasuredAgain(t *testing.T) {
	needServer(t)
	defer func(f func() processors) { spentSoFar = f }(spentSoFar)
	for name, c := range map[string]struct {
		stolen []float64 // of each try, in a hundred ticks
		tries  int
		told   float64
	}{
		"undisturbed": {[]float64{1}, 1, 0.01},
		"once":        {[]float64{20, 2}, 2, 0.02},
		"always":      {[]float64{20, 30, 10}, 3, 0.1},
	} {
		var now processors
		tries := 0
		spentSoFar = func() processors { return now }
		s := subject{name: "a", run: func(store, string, time.Duration) (report.Sample, error) {
			now.stolen += c.stolen[tries]
			now.all += 100
			tries++
			return report.Sample{"try": float64(tries)}, nil
		}}
		m := redistest.Must(workload{name, []subject{s}}.measure(1, time.Millisecond, io.Discard))(t)
		require.Equal(t, c.tries, tries, name)
		require.Equal(t, report.Sample{"try": float64(c.tries)}, m.Rounds[0]["a"], "the last counts")
		require.InDelta(t, c.told, m.Stolen, 1e-9, name)
	}
}

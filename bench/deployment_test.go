package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/bench/report"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// The work reaches every master, and nothing of the servers is left.
func TestDeployments(t *testing.T) {
	on := emptyServer(t)
	for name, start := range map[string]func(*starter) *deployment{"cluster": startCluster, "sentinel": startSentinels} {
		t.Run(name, func(t *testing.T) {
			var dir string
			reached := false
			w := deployed(name, func(s *starter) *deployment {
				dir = s.TempDir()
				return start(s)
			}, workload{"64 keys", []subject{{run: func(st store, library string, d time.Duration) (report.Sample, error) {
				got := redistest.Must(fleet{64}.does(task{})(st, library, d))(t)
				reached = got["cycles/s"] > 0
				for _, master := range st.(*deployment).masters {
					calls, _ := redistest.Calls(infoOf(master))
					reached = reached && calls["evalsha"] > 0
				}
				return got, nil
			}}}}, "holdfast")
			for d := 50 * time.Millisecond; d < 10*time.Second && !reached; d *= 10 { // a busy machine may get nothing done in the first
				redistest.Must(w.subjects[0].measure(on, d))(t)
				require.NoDirExists(t, dir)
			}
			require.True(t, reached, "some master has no work")
		})
	}
}

// What fails at the start of servers is an error, and nothing of them is left.
func TestDeploymentThatDoesNotStart(t *testing.T) {
	needServer(t)
	var dir string
	_, err := deploy(func(s *starter) *deployment {
		startCluster(s)
		dir = s.TempDir()
		require.Equal(s, "as told", "otherwise")
		return nil
	})
	require.ErrorIs(t, err, errNotStarted)
	require.ErrorContains(t, err, "as told")
	require.NoDirExists(t, dir)

	t.Setenv("PATH", t.TempDir())
	_, err = deploy(startSentinels)
	require.ErrorIs(t, err, errNotStarted)
	require.ErrorContains(t, err, "redis-server")
}

// As with a test: what was started last, and may need the rest, ends first.
func TestStarterCleansUpBackwards(t *testing.T) {
	s, ended := &starter{}, []int(nil)
	for i := range 3 {
		s.Cleanup(func() { ended = append(ended, i) })
	}
	s.stop()
	require.Equal(t, []int{2, 1, 0}, ended)
}

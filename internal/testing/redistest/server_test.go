package redistest

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, Leftovers()...) }

func TestStartTakesAnotherPortWhenOneIsLost(t *testing.T) {
	taken := Start(t)
	s := &Server{dir: t.TempDir(), port: taken.port}
	_, err := s.launch()
	require.ErrorIs(t, err, errPortTaken)
}

// recorder takes down failures instead of failing.
type recorder struct {
	testing.TB
	errors int
	end    string
}

func (r *recorder) Errorf(string, ...any) { r.errors++ }

func (r *recorder) Fatal(...any) {
	r.end = "fatal"
	runtime.Goexit()
}

func (r *recorder) Skip(...any) {
	r.end = "skip"
	runtime.Goexit()
}

// endOf is how f ends a test.
func endOf(t *testing.T, f func(testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.end
}

func TestFaultsOnADeadServerFailTheTest(t *testing.T) {
	s := Start(t)
	s.Kill()
	r := &recorder{TB: t}
	s.t = r
	s.Kill()
	s.Pause()
	s.Resume()
	require.Equal(t, 3, r.errors)
}

func TestStartWithoutRedisSkipsOrFailsInCI(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("REDIS_SERVER", "")
	for ci, want := range map[string]string{"": "skip", "true": "fatal"} {
		t.Setenv("CI", ci)
		require.Equal(t, want, endOf(t, func(t testing.TB) { Start(t) }))
	}
}

// Only an older server skips a test of what came with Redis 7.0.
func TestNeedRedis7(t *testing.T) {
	for line, want := range map[string]version{
		"Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64 build=dff95a8e7a99d269\n":          {"Redis 6.2.14", 6},
		"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0\n": {"Redis 7.0.15", 7},
		"Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=1536df31c0395150\n":          {"Valkey 9.1.2", 9},
	} {
		require.Equal(t, want, Must(parseVersion(line))(t))
	}
	v := Must(installed())(t)
	require.Equal(t, map[bool]string{true: "skip", false: ""}[v.major < 7], endOf(t, func(t testing.TB) { NeedRedis7(t, "it has none") }))
}

func TestOlderServersGetWhatDoesTheSame(t *testing.T) {
	args := strings.Fields("--enable-debug-command local --appendonly yes --busy-reply-threshold 20 --client-output-buffer-limit pubsub 1kb 1kb 1")
	require.Equal(t, args, version{major: 7}.understood(args))
	require.Equal(t,
		strings.Fields("--appendonly yes --lua-time-limit 20 --client-output-buffer-limit pubsub 1kb 1kb 1"),
		version{major: 6}.understood(args))
}

// The clock jumps to where it is set and runs as it is told, from then on, also over a restart, and keys expire by it.
func TestSetClock(t *testing.T) {
	s := StartWithClock(t)
	for _, c := range []struct {
		ahead time.Duration
		rate  float64
	}{{0, 2}, {-3 * time.Second, 0.5}, {time.Second, 1.01}, {2 * time.Hour, 1}} {
		s.Do(t, "SET", "k", "v", "EX", "3600")
		before := time.Now()
		s.SetClock(c.ahead, c.rate)
		after := time.Now()
		gains := func(from time.Time) float64 { return c.ahead.Seconds() + time.Since(from).Seconds()*(c.rate-1) }
		holds := func() {
			t.Helper()
			const late = 0.2 // between two looks, on a busy machine, which may look again
			require.Eventually(t, func() bool {
				seen, a, b := ahead(t, s), gains(before), gains(after)
				return seen > min(a, b)-late && seen < max(a, b)+late
			}, Patience, time.Millisecond)
		}
		holds()
		require.Equal(t, c.ahead > time.Hour, Must(s.Do(t, "EXISTS", "k").ToInt64())(t) == 0)
		s.Restart()
		holds()
	}
}

// ahead is by how many seconds the clock of a server is ahead.
func ahead(t *testing.T, s *Server) float64 {
	t.Helper()
	words := Must(s.Do(t, "TIME").AsIntSlice())(t)
	return float64(words[0]) + float64(words[1])/1e6 - float64(time.Now().UnixMicro())/1e6
}

package redistest

import (
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, Leftovers()...) }

func do(t *testing.T, c rueidis.Client, args ...string) (rueidis.RedisMessage, error) {
	return c.Do(t.Context(), c.B().Arbitrary(args...).Build()).ToMessage()
}

func text(t *testing.T, m rueidis.RedisMessage) string {
	s, err := m.ToString()
	require.NoError(t, err)
	return s
}

func TestServerServesClientsAndAdministrator(t *testing.T) {
	s := Start(t)
	c := s.Client(t)
	s.Do(t, "SET", "k", "v")
	got, err := do(t, c, "GET", "k")
	require.NoError(t, err)
	require.Equal(t, "v", text(t, got))

	m := s.Do(t, "GET", "missing")
	require.True(t, m.IsNil())
	_, err = s.TryDo("NO SUCH COMMAND")
	require.ErrorContains(t, err, "unknown command")
	require.Contains(t, text(t, s.Do(t, "CLIENT", "LIST")), "name="+AdminName)
}

func TestClientIsClosedWithItsTest(t *testing.T) {
	s := Start(t)
	t.Run("test", func(t *testing.T) {
		_, err := do(t, s.Client(t), "PING")
		require.NoError(t, err)
	})
	onlyAdmin(t, s)
}

func TestServersAreApart(t *testing.T) {
	a, b := Start(t), Start(t)
	require.NotEqual(t, a.Addr(), b.Addr())
	require.NotEqual(t, a.Dir(), b.Dir())
	a.Do(t, "SET", "k", "v")
	m := b.Do(t, "GET", "k")
	require.True(t, m.IsNil())
}

func TestStartPassesArguments(t *testing.T) {
	s := Start(t, "--requirepass", "secret", "--maxmemory", "123mb")
	require.Contains(t, text(t, s.Do(t, "INFO", "memory")), "maxmemory:128974848")
	_, err := do(t, s.Client(t), "PING")
	require.NoError(t, err)

	opt := rueidis.ClientOption{InitAddress: []string{s.Addr()}, DisableCache: true}
	_, err = rueidis.NewClient(opt)
	require.ErrorContains(t, err, "NOAUTH")
}

func TestStartSaysWhyAServerDidNotStart(t *testing.T) {
	s := &Server{dir: t.TempDir(), port: FreePort(t), args: []string{"--maxmemory", "nonsense"}}
	_, err := s.launch()
	require.ErrorContains(t, err, "exited")
	require.ErrorContains(t, err, "nonsense")
}

func TestStartTakesAnotherPortWhenOneIsLost(t *testing.T) {
	taken := Start(t)
	s := &Server{dir: t.TempDir(), port: taken.port}
	_, err := s.launch()
	require.ErrorIs(t, err, errPortTaken)
	taken.Do(t, "PING")
}

func TestPauseStopsAnswersAndResumeBringsThem(t *testing.T) {
	s := Start(t)
	conn := dial(t, s.Addr())
	for range 3 {
		s.Pause()
		require.True(t, stopped(s.proc.cmd.Process.Pid))
		conn.send("PING")
		conn.expectSilence()
		s.Resume()
		conn.expect("+PONG\r\n")
	}
}

func TestKillAndRestart(t *testing.T) {
	for _, aof := range []string{"no", "yes"} {
		t.Run("appendonly "+aof, func(t *testing.T) {
			s := Start(t, "--appendonly", aof, "--appendfsync", "always")
			s.Do(t, "SET", "k", "v")
			addr := s.Addr()
			s.Kill()
			_, err := net.Dial("tcp", addr)
			require.ErrorContains(t, err, "refused")

			s.Restart()
			require.Equal(t, addr, s.Addr())
			m := s.Do(t, "GET", "k")
			require.Equal(t, aof == "no", m.IsNil())
			files, err := filepath.Glob(filepath.Join(s.Dir(), "append*"))
			require.NoError(t, err)
			require.Equal(t, aof == "no", len(files) == 0)

			s.Pause()
			s.Restart() // of a paused process, without Kill
			s.Do(t, "PING")
		})
	}
}

func TestF28_RestartReturnsWhileLoading(t *testing.T) {
	s := Start(t, "--appendonly", "yes")
	s.Do(t, "EVAL", "for i = 1, 5000 do redis.call('SET', 'k' .. i, 'v') end", "0")
	s.Kill()
	s.args = append(s.args, "--key-load-delay", "100")
	s.Restart()
	conn := dial(t, s.Addr())
	conn.send("PING")
	require.Contains(t, conn.next(), "-LOADING")
	require.Equal(t, "v", text(t, s.Do(t, "GET", "k1"))) // Do waits for the end of it
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
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			Start(r)
		}()
		<-done
		require.Equal(t, want, r.end)
	}
}

func TestRestartsMayRunTogether(t *testing.T) {
	s := Start(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(s.Restart)
	}
	wg.Wait()
	s.Do(t, "PING")
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

func TestClusterNode(t *testing.T) {
	t.Parallel()
	s := Start(t, ClusterNode(t, "0-8191", "8192-16383")...)
	s.AwaitClusterNode(t)
	s.Do(t, "SET", "b", "its slot is 3300")
	_, err := s.TryDo("SET", "a", "its slot is 15495")
	require.ErrorContains(t, err, "MOVED 15495")
}

func TestStartClusterMaster(t *testing.T) {
	t.Parallel()
	s := StartClusterMaster(t)
	s.AwaitClusterNode(t)
	s.Do(t, "SET", "a", "its slot is 15495")
	for _, peer := range s.Peers() {
		require.Eventually(t, func() bool {
			_, err := peer.TryDo("GET", "a")
			return err != nil && strings.Contains(err.Error(), "MOVED 15495 "+s.Addr())
		}, startTimeout, startTimeout/2000)
	}
	require.Eventually(t, func() bool { return strings.Contains(s.ask(t, "INFO", "replication"), "state=online") }, startTimeout, startTimeout/2000)
}

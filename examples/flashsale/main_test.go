package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// mainEnv makes the test binary the program itself, so that what the tests run
// is instrumented as they are.
const mainEnv = "FLASHSALE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

func command(t *testing.T, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), mainEnv+"=1", "GORACE=atexit_sleep_ms=0") // else each process ends a second late
	c.WaitDelay = 15 * time.Second                                         // for processes that outlive it
	return c
}

func flashsale(t *testing.T, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	c := command(t, args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// row returns the number of a row of the table.
func row(t *testing.T, stdout, name string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` +(\d+)`).FindStringSubmatch(stdout)
	require.NotNil(t, m, "no row %q in:\n%s", name, stdout)
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

func requireClean(t *testing.T, stdout string) {
	t.Helper()
	require.NotContains(t, stdout, "WRONG", "two holders")
	for _, name := range []string{"oversold", "lost or double orders", "stock and book differ by"} {
		require.Zero(t, row(t, stdout, name), "%s:\n%s", name, stdout)
	}
	require.Equal(t, row(t, stdout, "orders"), row(t, stdout, "sold")+row(t, stdout, "sold out"), stdout)
}

func TestG1_NothingIsOversold(t *testing.T) {
	status, stdout, stderr := flashsale(t, "-buyers", "300", "-stock", "30")
	require.Zero(t, status, stdout)
	require.Empty(t, stderr)
	requireClean(t, stdout)
	require.Equal(t, 300, row(t, stdout, "orders"))
	require.Contains(t, stdout, "(90 units)")
	require.Contains(t, stdout, "protects nothing")
	require.Regexp(t, `p50 +\S+s\n +p99 +\S+s\n +max +\S+s\nlocks per second +[1-9]`, stdout)
}

// What the lock is for.
func TestWithoutGuardOversells(t *testing.T) {
	status, stdout, stderr := flashsale(t, "-guard=none", "-buyers", "600", "-stock", "30")
	require.Equal(t, exitWrong, status, stdout)
	require.Empty(t, stderr)
	require.NotZero(t, row(t, stdout, "oversold"))
	require.Contains(t, stdout, "WRONG, as was to be expected")
}

func TestF1_KilledProcess(t *testing.T) {
	for name, where := range map[string][]string{"embedded": nil, "real": {"-redis", redistest.Start(t).Addr()}} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"-kill", "-processes", "3", "-orders", "orders.csv"}, where...)
			status, stdout, stderr := flashsale(t, args...)
			require.Zero(t, status, stdout+stderr)
			require.Empty(t, stderr)
			requireClean(t, stdout)
			require.Equal(t, 400, row(t, stdout, "orders"))
			killed := regexp.MustCompile(`Process (\d) killed inside its critical section, booking order (\w+)`).FindStringSubmatch(stdout)
			require.NotNil(t, killed, stdout)
			taken := regexp.MustCompile(`Process (\d) has placed order (\w+)`).FindStringSubmatch(stdout)
			require.NotNil(t, taken, stdout)
			require.Equal(t, killed[2], taken[2])
			require.NotEqual(t, killed[1], taken[1])
			require.Regexp(t, `take over its [1-9]\d* unfinished`, stdout)
		})
	}
}

func TestRealRedisByURL(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "open-sesame")
	url := "redis://default:open-sesame@" + s.Addr() + "/3"
	status, stdout, stderr := flashsale(t, "-redis", url, "-buyers", "300", "-stock", "30")
	require.Zero(t, status, stdout+stderr)
	requireClean(t, stdout)
	require.NotContains(t, stdout+stderr, "open-sesame")
	require.NotContains(t, stdout, "embedded")
	require.Eventually(t, func() bool { // what a call that went unanswered has left ends by itself
		keyspace, err := s.TryDo("INFO", "keyspace")
		require.NoError(t, err)
		text, err := keyspace.ToString()
		require.NoError(t, err)
		return !strings.Contains(text, "db")
	}, 20*time.Second, 10*time.Millisecond, "keys left over")
}

// underWay starts a sale that takes a minute and returns when some is sold.
func underWay(t *testing.T, args ...string) (c *exec.Cmd, stdout io.Reader, stderr *bytes.Buffer) {
	c = command(t, append([]string{"-buyers", "50000"}, args...)...)
	stderr = new(bytes.Buffer)
	c.Stderr = stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewReader(out)
	some := regexp.MustCompile(`of 50000 orders: [1-9]`)
	for line := ""; !some.MatchString(line); {
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	return c, lines, stderr
}

func TestCtrlC(t *testing.T) {
	for _, sent := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		c, out, stderr := underWay(t)
		require.NoError(t, c.Process.Signal(sent))
		rest, err := io.ReadAll(out)
		require.NoError(t, err)
		stdout := string(rest)
		require.NoError(t, c.Wait(), stdout)
		require.Empty(t, stderr.String())
		require.Contains(t, stdout, "Stopped early.")
		require.Equal(t, 50000, row(t, stdout, "sold")+row(t, stdout, "sold out")+row(t, stdout, "not placed"))
		require.NotZero(t, row(t, stdout, "sold"))
		require.Zero(t, row(t, stdout, "oversold"))
	}
}

// The processes hold the standard error of their parent, whose end Wait waits
// for.
func TestProcessesEndWithTheirParent(t *testing.T) {
	c, _, _ := underWay(t, "-redis", redistest.Start(t).Addr())
	killed := time.Now()
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	require.Less(t, time.Since(killed), c.WaitDelay, "processes outlive their parent")
}

func TestRedisDies(t *testing.T) {
	s := redistest.Start(t)
	c, out, stderr := underWay(t, "-redis", s.Addr())
	s.Kill()
	_, err := io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.Error(t, c.Wait())
	require.Equal(t, exitWrong, c.ProcessState.ExitCode())
	require.Regexp(t, `\Aflashsale: process \d: .*; no table, as the order book cannot be read: .*\n\z`, stderr.String())
}

// The refusal of a Redis Cluster is what is told, and the clean-up works there.
func TestClusterIsRefused(t *testing.T) {
	s := redistest.Start(t, redistest.ClusterNode(t, "0-16383", "")...)
	s.AwaitClusterNode(t)
	status, _, stderr := flashsale(t, "-redis", s.Addr())
	require.NotZero(t, status)
	require.Contains(t, stderr, "Cluster")
	require.NotContains(t, stderr, "panic")
	keys := s.Do(t, "KEYS", "*")
	left, err := keys.AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, left)
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// mainEnv makes the test binary the program itself, so that what the tests run
// is instrumented as they are.
const mainEnv = "QUORUM_TEST_MAIN"

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
	return c
}

func quorum(t *testing.T, c *exec.Cmd) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

func needRedis(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "redis-server is not on the PATH")
		t.Skip("redis-server is not on the PATH; install it to run this test")
	}
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

// requireClean also looks for what a run that stood still would not have.
func requireClean(t *testing.T, status int, stdout string) {
	t.Helper()
	require.NotContains(t, stdout, "WRONG", "two holders")
	require.Equal(t, exitOK, status, stdout)
	require.Zero(t, row(t, stdout, "double holds"), stdout)
	require.NotZero(t, row(t, stdout, "sections"), stdout)
	require.Equal(t, row(t, stdout, "sections"), row(t, stdout, "counter"), stdout)
	require.Regexp(t, `(?m)^faults +\d+ \([1-9]\d* killed, [1-9]\d* restarted, [1-9]\d* paused\)$`, stdout)
	require.Regexp(t, `p50 +\S+s\n +p99 +\S+s\n +max +\S+s\n`, stdout)
	require.Contains(t, stdout, "All is well")
	for _, seen := range []string{" away (killed)", " away (paused)", " vote,"} {
		require.Contains(t, stdout, seen)
	}
}

func TestG1_RealMasters(t *testing.T) {
	needRedis(t)
	var out bytes.Buffer
	status, err := run(t.Context(), []string{"-time", "4s", "-lease", "400ms"}, &out)
	require.NoError(t, err)
	requireClean(t, status, out.String())
	require.Contains(t, out.String(), "Five masters: real ones, by /")
	require.Contains(t, out.String(), "Restart guard: on.")
	require.Regexp(t, ` no vote for another 0\.[0-4]s \(restarted\)`, out.String())
}

func TestG1_EmbeddedMasters(t *testing.T) {
	var out bytes.Buffer
	status, err := run(t.Context(), []string{"-embedded", "-time", "4s", "-lease", "400ms"}, &out)
	require.NoError(t, err)
	requireClean(t, status, out.String())
	require.Contains(t, out.String(), "Five masters: embedded in this program, as -embedded asks.")
	require.Contains(t, out.String(), "Restart guard: OFF, as embedded servers have no run id.")
	require.NotContains(t, out.String(), "no vote")
}

// What the guard is for.
func TestWithoutGuardTwoAreInside(t *testing.T) {
	for _, where := range []string{"real", "embedded"} {
		t.Run(where, func(t *testing.T) {
			if where == "real" {
				needRedis(t)
			}
			args := []string{"-guard=false", "-time", "3s", "-embedded=" + strconv.FormatBool(where == "embedded")}
			var out bytes.Buffer
			status := exitOK
			for range 5 { // on a machine that is busy with other things, one run may be too short
				out.Reset()
				var err error
				if status, err = run(t.Context(), args, &out); status != exitOK {
					require.NoError(t, err)
					break
				}
			}
			require.Equal(t, exitWrong, status, out.String())
			require.NotZero(t, row(t, out.String(), "double holds"), out.String())
			require.Contains(t, out.String(), "Restart guard: OFF, as -guard=false asks.")
			require.Contains(t, out.String(), "WRONG, as was to be expected")
		})
	}
}

func TestWithoutRedisServer(t *testing.T) {
	c := command(t, "-time", "3s")
	c.Env = append(c.Env, "PATH=")
	status, stdout, stderr := quorum(t, c)
	require.Equal(t, exitOK, status, stdout)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "embedded in this program, as redis-server is not on the PATH.")

	c = command(t, "-guard")
	c.Env = append(c.Env, "PATH=")
	status, stdout, stderr = quorum(t, c)
	require.Equal(t, exitInput, status)
	require.Empty(t, stdout)
	require.Regexp(t, `\Aquorum: -guard: .*redis-server is not on the PATH\n\z`, stderr)
}

func TestBadFlags(t *testing.T) {
	for args, named := range map[string]string{
		"-time 0":             "-time",
		"-time 2h":            "-time",
		"-time soon":          "-time",
		"-goroutines 0":       "-goroutines",
		"-goroutines 257":     "-goroutines",
		"-lease 199ms":        "-lease",
		"-lease 11s":          "-lease",
		"-lease 1000001us":    "-lease",
		"-embedded -guard":    "-guard",
		"-embedded=perhaps":   "-embedded",
		"-masters 3":          "-masters",
		"-time 1s elsewhere":  "elsewhere",
		"-guard=true elsewho": "elsewho",
	} {
		status, stdout, stderr := quorum(t, command(t, strings.Fields(args)...))
		require.Equal(t, exitInput, status, args)
		require.Empty(t, stdout, args)
		require.Regexp(t, `\Aquorum: [^\n]*`+named+`[^\n]*\n\z`, stderr, args)
	}
}

func TestHelp(t *testing.T) {
	status, stdout, stderr := quorum(t, command(t, "-h"))
	require.Equal(t, exitOK, status)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "-goroutines")
}

// underWay starts a run on real masters that takes a minute and returns, with
// their addresses, when it shows how they stand.
func underWay(t *testing.T) (c *exec.Cmd, addrs []string, stdout io.Reader, stderr *bytes.Buffer) {
	needRedis(t)
	c = command(t, "-time", "1m", "-lease", "400ms")
	stderr = new(bytes.Buffer)
	c.Stderr = stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines, read := bufio.NewReader(out), ""
	for !strings.Contains(read, "away") {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, read)
		read += line
	}
	for _, m := range regexp.MustCompile(`node \d: (\S+)\n`).FindAllStringSubmatch(read, -1) {
		addrs = append(addrs, m[1])
	}
	require.Len(t, addrs, masters)
	return c, addrs, lines, stderr
}

func requireGone(t *testing.T, addrs []string) {
	for _, addr := range addrs {
		require.Eventually(t, func() bool { // a killed process takes an instant to go
			c, err := net.Dial("tcp", addr)
			if err == nil {
				c.Close()
			}
			return err != nil
		}, 10*time.Second, time.Millisecond, addr)
	}
}

func TestCtrlC(t *testing.T) {
	for _, sent := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		c, addrs, out, stderr := underWay(t)
		require.NoError(t, c.Process.Signal(sent))
		rest, err := io.ReadAll(out)
		require.NoError(t, err)
		stdout := string(rest)
		require.NoError(t, c.Wait(), stdout)
		require.Empty(t, stderr.String())
		require.Contains(t, stdout, "Stopped early.")
		require.Zero(t, row(t, stdout, "double holds"))
		requireGone(t, addrs)
	}
}

func TestServersEndWithAKilledProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the parent-death signal of Linux")
	}
	c, addrs, _, _ := underWay(t)
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	requireGone(t, addrs)
}

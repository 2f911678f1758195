package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
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
const mainEnv = "TICKETQUEUE_TEST_MAIN"

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

func ticketqueue(t *testing.T, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	c := command(t, args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// total returns a number from below the table.
func total(t *testing.T, stdout, name string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` +(\d+)$`).FindStringSubmatch(stdout)
	require.NotNil(t, m, "no row %q in:\n%s", name, stdout)
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

// orders reads the table: for each arrival its number in the order of service, 0
// for none, and what is said of it.
func orders(t *testing.T, stdout string) (service []int, fates map[string]int) {
	t.Helper()
	fates = map[string]int{}
	for i, m := range regexp.MustCompile(`(?m)^ *(\d+)  \S+ +\d+ +\S+ +(\d+|-)(?:  (.+))?$`).FindAllStringSubmatch(stdout, -1) {
		require.Equal(t, strconv.Itoa(i+1), m[1], stdout)
		n, _ := strconv.Atoi(m[2])
		service = append(service, n)
		fates[m[3]]++
	}
	return service, fates
}

// requireInOrder judges the table itself, not what the program says of it.
func requireInOrder(t *testing.T, stdout string) {
	t.Helper()
	service, fates := orders(t, stdout)
	require.Len(t, service, total(t, stdout, "customers"), stdout)
	last := 0
	for _, n := range service {
		if n > 0 {
			require.Equal(t, last+1, n, stdout)
			last = n
		}
	}
	require.Equal(t, last, total(t, stdout, "served"), stdout)
	require.Equal(t, last, fates[""], stdout)
	require.Equal(t, total(t, stdout, "killed in the queue"), fates["gone: killed in the queue"], stdout)
	require.Equal(t, total(t, stdout, "killed while served"), fates["killed while served"], stdout)
	for _, name := range []string{"overtaken", "inversions", "lost or served twice"} {
		require.Zero(t, total(t, stdout, name), stdout)
	}
	require.Contains(t, stdout, "All is well")
}

func TestG8_ServedInTheOrderOfArrivalWhoeverDies(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "open-sesame")
	url := "redis://default:open-sesame@" + s.Addr() + "/3"
	for name, args := range map[string][]string{
		"embedded server, made customers":        {"-customers", "60"},
		"real server, customers from the sample": {"-redis", url, "-arrivals", "arrivals.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := ticketqueue(t, append([]string{"-lease", "2s"}, args...)...)
			require.Zero(t, status, stdout+stderr)
			require.Empty(t, stderr)
			requireInOrder(t, stdout)
			require.Equal(t, len(args) == 2, strings.Contains(stdout, "protects nothing"))
			require.NotContains(t, stdout, "open-sesame")
			require.Equal(t, 1, total(t, stdout, "killed while served"), stdout)
			require.Positive(t, total(t, stdout, "killed in the queue"), stdout)
			require.Regexp(t, `(?m)^Process \d is gone \(signal: killed\); in the queue it had \w+\d`, stdout)
			require.Regexp(t, `(?m)^Process \d is gone \(signal: killed\) while it served \w+\d; `, stdout)
			require.Regexp(t, `(?m)^\w+\d is served next, \S+s after the kill\.`, stdout)
		})
	}
	keyspace := s.Do(t, "INFO", "keyspace")
	text, err := keyspace.ToString()
	require.NoError(t, err)
	require.NotContains(t, text, "db", "keys left over, of the dead too")
}

// What the fair lock is for.
func TestUnfairLockIsCaught(t *testing.T) {
	status, stdout, stderr := ticketqueue(t, "-guard=rlock", "-kill=false", "-customers", "80", "-lease", "5s")
	require.Equal(t, exitWrong, status, stdout)
	require.Empty(t, stderr)
	require.NotZero(t, total(t, stdout, "inversions"))
	require.Zero(t, total(t, stdout, "lost or served twice"))
	require.Equal(t, 80, total(t, stdout, "served"))
	require.Contains(t, stdout, "WRONG, as was to be expected")
	service, fates := orders(t, stdout)
	require.False(t, slices.IsSorted(service), stdout)
	require.Equal(t, 80-total(t, stdout, "overtaken"), fates[""], stdout)
}

// underWay starts a day that takes a minute and returns when some are served.
func underWay(t *testing.T, args ...string) (c *exec.Cmd, stdout io.Reader, stderr *bytes.Buffer) {
	c = command(t, append([]string{"-kill=false", "-customers", "4000"}, args...)...)
	stderr = new(bytes.Buffer)
	c.Stderr = stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewReader(out)
	some := regexp.MustCompile(` of 4000 customers have come, [1-9]\d* are served`)
	for line := ""; !some.MatchString(line); {
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	return c, lines, stderr
}

func TestCtrlC(t *testing.T) {
	for _, sent := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		c, out, stderr := underWay(t, "-lease", "3s")
		require.NoError(t, c.Process.Signal(sent))
		rest, err := io.ReadAll(out)
		require.NoError(t, err)
		stdout := string(rest)
		require.NoError(t, c.Wait(), stdout)
		require.Empty(t, stderr.String())
		require.Contains(t, stdout, "Stopped early.")
		require.Equal(t, 4000, total(t, stdout, "served")+total(t, stdout, "not served"))
		require.NotZero(t, total(t, stdout, "served"))
		require.Zero(t, total(t, stdout, "inversions"))
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
	require.Regexp(t, `\Aticketqueue: .*; no table, as the list of the served cannot be read: .*\n\z`, stderr.String())
}

// The refusal of a Redis Cluster is what is told, and the clean-up works there.
func TestClusterIsRefused(t *testing.T) {
	s := redistest.Start(t, redistest.ClusterNode(t, "0-16383", "")...)
	s.AwaitClusterNode(t)
	status, _, stderr := ticketqueue(t, "-redis", s.Addr())
	require.NotZero(t, status)
	require.Contains(t, stderr, "Cluster")
	require.NotContains(t, stderr, "panic")
	keys := s.Do(t, "KEYS", "*")
	left, err := keys.AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, left)
}

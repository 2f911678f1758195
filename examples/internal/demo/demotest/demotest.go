// Package demotest runs an example as its users do. Only the tests of examples use it.
package demotest

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

const mainEnv = "HOLDFAST_EXAMPLE_TEST" // makes the test binary the example itself

// Main is what TestMain calls. main is the example's own.
func Main(m *testing.M, main func()) {
	if os.Getenv(mainEnv) != "" {
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// Command returns the example with its arguments.
func Command(t *testing.T, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 5*redistest.Patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), mainEnv+"=1", "GORACE=atexit_sleep_ms=0") // without this, each process ends a second late
	c.WaitDelay = redistest.Patience                                       // for processes that outlive it
	return c
}

// Run runs the example to its end.
func Run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := Command(t, args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// Start starts the example and returns when it has printed what seen matches. The caller must
// read the rest of its output before c.Wait.
func Start(t *testing.T, seen string, args ...string) (c *exec.Cmd, stdout io.Reader, stderr *bytes.Buffer) {
	t.Helper()
	c, stderr = Command(t, args...), new(bytes.Buffer)
	c.Stderr = stderr
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	printed, piece := "", make([]byte, 1024)
	for matches := regexp.MustCompile(seen); !matches.MatchString(printed); {
		n, err := stdout.Read(piece)
		printed += string(piece[:n])
		require.NoError(t, err, printed)
	}
	return c, stdout, stderr
}

// RedisDies starts the example on a server and kills that when the example has printed seen. The example must exit
// with 1 and not panic.
func RedisDies(t *testing.T, seen string, args ...string) {
	t.Helper()
	s := redistest.Start(t)
	c, out, stderr := Start(t, seen, append(args, "-redis", s.Addr())...)
	s.Kill()
	_, err := io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.Error(t, c.Wait())
	require.Equal(t, 1, c.ProcessState.ExitCode())
	require.NotContains(t, stderr.String(), "panic")
}

// Number returns the number that group 1 of pattern matches in a program's output.
func Number(t *testing.T, output, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(output)
	require.NotNil(t, m, "no %q in:\n%s", pattern, output)
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

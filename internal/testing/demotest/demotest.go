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

// Run runs the example to its end.
func Run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return When(t, "", func(*exec.Cmd) {}, args...)
}

// When runs the example and calls then when it has printed what seen matches. rest is what it prints after that,
// until its end.
func When(t *testing.T, seen string, then func(*exec.Cmd), args ...string) (status int, rest, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*redistest.Patience)
	defer cancel()
	c, errs := exec.CommandContext(ctx, os.Args[0], args...), new(bytes.Buffer)
	c.Env = append(os.Environ(), mainEnv+"=1", "GORACE=atexit_sleep_ms=0") // without this, each process ends a second late
	c.WaitDelay = redistest.Patience                                       // for processes that outlive it
	c.Stderr = errs
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	printed, piece := "", make([]byte, 1024)
	for matches := regexp.MustCompile(seen); !matches.MatchString(printed); {
		n, err := stdout.Read(piece)
		printed += string(piece[:n])
		require.NoError(t, err, printed)
	}
	then(c)
	all, err := io.ReadAll(stdout)
	require.NoError(t, err)
	_ = c.Wait() // the status says it
	return c.ProcessState.ExitCode(), string(all), errs.String()
}

// Interrupt is Ctrl-C.
func Interrupt(c *exec.Cmd) { _ = c.Process.Signal(os.Interrupt) }

// Succeeds runs the example, which must succeed and print no error.
func Succeeds(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	status, stdout, stderr := Run(t, args...)
	require.Zero(t, status, stdout+stderr)
	require.Empty(t, stderr)
	return stdout
}

// OnBoth runs a test of the example on an embedded server and on a real Redis. redis are the arguments for that.
func OnBoth(t *testing.T, test func(t *testing.T, redis ...string)) {
	t.Run("embedded", func(t *testing.T) { test(t) })
	t.Run("real", func(t *testing.T) { test(t, "-redis", redistest.Start(t).Addr()) })
}

// Fails runs the example, which must exit with status and print an error that matches.
func Fails(t *testing.T, status int, stderr string, args ...string) (stdout string) {
	t.Helper()
	got, stdout, printed := Run(t, args...)
	require.Equal(t, status, got, stdout+printed)
	require.Regexp(t, stderr, printed)
	return stdout
}

// RedisDies starts the example on a server and kills that when the example has printed seen. The example must exit
// with 1 and not panic.
func RedisDies(t *testing.T, seen string, args ...string) {
	t.Helper()
	s := redistest.Start(t)
	status, _, stderr := When(t, seen, func(*exec.Cmd) { s.Kill() }, append(args, "-redis", s.Addr())...)
	require.Equal(t, 1, status)
	require.NotContains(t, stderr, "panic")
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

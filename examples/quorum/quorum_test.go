package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

// realServer is the flag of redis-server. Without one the test is skipped.
func realServer(t *testing.T) string {
	redistest.Start(t)
	return "-server=" + cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server")
}

// column returns a number from below the table's head.
func column(t *testing.T, stdout string, i int) int {
	t.Helper()
	return demotest.Number(t, stdout, `(?m)^`+strings.Repeat(` +\d+`, i)+` +(\d+)(?: +\d+)*\s*$`)
}

// requireClean runs the example until it has printed what seen matches, which shows that there were sections and faults.
func requireClean(t *testing.T, seen, server string) {
	t.Helper()
	t.Parallel()
	// A node has a tenth of the lease to answer, which is much on a busy machine, too.
	c, out, stderr := demotest.Start(t, `(?s)`+seen, "-time", "4m", "-lease", "20s", "-lockers", "2", "-goroutines", "2", server)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, c.Wait(), stderr.String())
	stdout := string(rest)
	require.Equal(t, column(t, stdout, 0), column(t, stdout, 1), stdout)
	require.Zero(t, column(t, stdout, 2), stdout)
	require.NotZero(t, column(t, stdout, 5), "turns of faults:\n%s", stdout)
	require.Contains(t, stdout, "no two were inside together")
}

func TestG1_RealMasters(t *testing.T) {
	requireClean(t, `restart guard: true.* [1-9]\d* sections.*away.*no vote for 1?\d\.`, realServer(t))
}

func TestG1_EmbeddedMasters(t *testing.T) {
	requireClean(t, `embedded servers.*restart guard: false.* [1-9]\d* sections.*away`, "-server=")
}

// What the guard is for.
func TestWithoutGuardTwoAreInside(t *testing.T) {
	for name, server := range map[string]func(*testing.T) string{
		"real": realServer, "embedded": func(*testing.T) string { return "-server=" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, out, stderr := demotest.Start(t, `[1-9]\d* double holds`, server(t), "-guard=false", "-time", "4m", "-lease", "20s")
			require.NoError(t, c.Process.Signal(os.Interrupt))
			_, err := io.Copy(io.Discard, out)
			require.NoError(t, err)
			require.Error(t, c.Wait())
			require.Equal(t, 1, c.ProcessState.ExitCode())
			require.Regexp(t, `WRONG: two were inside together [1-9]\d* times`, stderr.String())
		})
	}
}

// Neither Ctrl-C nor the death of the program leaves a server behind.
func TestServersEndWithTheProgram(t *testing.T) {
	for _, sent := range []os.Signal{os.Interrupt, os.Kill} {
		t.Run(sent.String(), func(t *testing.T) {
			first := 10000 + nodes*(os.Getpid()%400)
			c, out, stderr := demotest.Start(t, "sections,", realServer(t), "-time", "4m", "-lease", "20s", fmt.Sprint("-port=", first))
			require.NoError(t, c.Process.Signal(sent))
			rest, err := io.ReadAll(out)
			require.NoError(t, err)
			if err := c.Wait(); sent == os.Interrupt {
				require.NoError(t, err, stderr.String())
				require.Contains(t, string(rest), "Stopped early.")
				require.Zero(t, column(t, string(rest), 2))
			}
			for i := range nodes {
				require.Eventually(t, func() bool {
					conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", first+i))
					if err == nil {
						conn.Close()
					}
					return err != nil
				}, redistest.Patience, time.Millisecond)
			}
		})
	}
}

func TestBadNumbersAreRefused(t *testing.T) {
	for _, flag := range []string{"-lockers=0", "-goroutines=0", "-lease=100ms", "-port=-1", "-port=65532"} {
		status, _, stderr := demotest.Run(t, flag)
		require.Equal(t, 1, status, flag)
		require.Contains(t, stderr, "-port: 0 to 65531", flag)
	}
}

func TestNoServerStarts(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "redis-server")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o700))
	status, _, stderr := demotest.Run(t, "-server="+broken)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "master 1 did not start: process 1: ")
}

type fakeEntry struct {
	holdfast.Entry
	err error
}

func (e *fakeEntry) Err() error { return e.err }

func TestCounterFindsDoubleHold(t *testing.T) {
	c, a, b := new(counter), &fakeEntry{}, &fakeEntry{}
	first, second := holdfast.NewLease(a), holdfast.NewLease(b)
	read, err := c.begin(&first)
	require.NoError(t, err)
	again, err := c.begin(&second)
	require.NoError(t, err)
	require.NoError(t, c.end(&second, again))
	require.NoError(t, c.end(&first, read))
	require.Equal(t, []int{1, 2, 1}, []int{c.double, c.sections, c.value}, "one is missing from the counter")
}

// A section that has lost its lease is not inside any more, and writes nothing.
func TestCounterKnowsLostLeases(t *testing.T) {
	c, a, b := new(counter), &fakeEntry{}, &fakeEntry{}
	first, second := holdfast.NewLease(a), holdfast.NewLease(b)
	read, err := c.begin(&first)
	require.NoError(t, err)
	a.err = errors.New("lost")
	again, err := c.begin(&second)
	require.NoError(t, err)
	require.NoError(t, c.end(&second, again))
	require.ErrorIs(t, c.end(&first, read), a.err)
	_, err = c.begin(&first)
	require.ErrorIs(t, err, a.err)
	require.Equal(t, []int{0, 1, 1}, []int{c.double, c.sections, c.value})
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/demotest"
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
	status, stdout, stderr := demotest.When(t, `(?s)`+seen, demotest.Interrupt,
		"-time", "4m", "-lease", "20s", "-lockers", "2", "-goroutines", "2", server)
	require.Zero(t, status, stderr)
	require.Equal(t, column(t, stdout, 0), column(t, stdout, 1), stdout)
	require.Zero(t, column(t, stdout, 2), stdout)
	require.NotZero(t, column(t, stdout, 5), "turns of faults:\n%s", stdout)
	require.Contains(t, stdout, "no two were inside together")
}

func TestG1_RealMasters(t *testing.T) {
	requireClean(t, `restart guard: true.* [1-9]\d* sections.*away.*no vote for 1?\d\.`, realServer(t))
}

func TestG1_EmbeddedMasters(t *testing.T) {
	// The first turn of faults begins after 25 s. Before that, only a busy machine is away.
	requireClean(t, `embedded servers.*restart guard: false.*\n *(2[6-9]|[3-9]\d|\d{3})\.\ds +[1-9]\d* sections[^\n]*away`, "-server=")
}

// What the guard is for.
func TestWithoutGuardTwoAreInside(t *testing.T) {
	for name, server := range map[string]func(*testing.T) string{
		"real": realServer, "embedded": func(*testing.T) string { return "-server=" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := demotest.When(t, `[1-9]\d* double holds`, demotest.Interrupt, server(t), "-guard=false", "-time", "4m", "-lease", "20s")
			require.Equal(t, 1, status)
			require.Regexp(t, `WRONG: two were inside together [1-9]\d* times`, stderr)
		})
	}
}

// Neither Ctrl-C nor the death of the program leaves a server behind.
func TestServersEndWithTheProgram(t *testing.T) {
	for _, sent := range []os.Signal{os.Interrupt, os.Kill} {
		t.Run(sent.String(), func(t *testing.T) {
			first := 10000 + nodes*(os.Getpid()%400)
			status, rest, stderr := demotest.When(t, "sections,", func(c *exec.Cmd) {
				require.NoError(t, c.Process.Signal(sent))
			}, realServer(t), "-time", "4m", "-lease", "20s", fmt.Sprint("-port=", first))
			if sent == os.Interrupt {
				require.Zero(t, status, stderr)
				require.Contains(t, rest, "Stopped early.")
				require.Zero(t, column(t, rest, 2))
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
		demotest.Fails(t, 1, "-port: 0 to 65531", flag)
	}
}

func TestNoServerStarts(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "redis-server")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o700))
	demotest.Fails(t, 1, "master 1 did not start: process 1: ", "-server="+broken)
}

type fakeEntry struct {
	holdfast.Entry
	err error
}

func (e *fakeEntry) Err() error { return e.err }

func TestCounterFindsDoubleHold(t *testing.T) {
	c, a, b := new(counter), &fakeEntry{}, &fakeEntry{}
	first, second := holdfast.NewLease(a), holdfast.NewLease(b)
	read, again := redistest.Must(c.begin(&first))(t), redistest.Must(c.begin(&second))(t)
	require.NoError(t, c.end(&second, again))
	require.NoError(t, c.end(&first, read))
	require.Equal(t, []int{1, 2, 1}, []int{c.double, c.sections, c.value}, "one is missing from the counter")
}

// A section that has lost its lease is not inside any more, and writes nothing.
func TestCounterKnowsLostLeases(t *testing.T) {
	c, a, b := new(counter), &fakeEntry{}, &fakeEntry{}
	first, second := holdfast.NewLease(a), holdfast.NewLease(b)
	read := redistest.Must(c.begin(&first))(t)
	a.err = errors.New("lost")
	require.NoError(t, c.end(&second, redistest.Must(c.begin(&second))(t)))
	require.ErrorIs(t, c.end(&first, read), a.err)
	_, err := c.begin(&first)
	require.ErrorIs(t, err, a.err)
	require.Equal(t, []int{0, 1, 1}, []int{c.double, c.sections, c.value})
}

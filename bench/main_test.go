package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with a call is said in one line, before anything is measured.
func TestBadCalls(t *testing.T) {
	for call, says := range map[string]string{
		"-rounds 0":                "-rounds: 0 is less than 1",
		"-rounds x":                "invalid value",
		"-time 1ms":                "-time: 1ms is less than 10ms",
		"-run (":                   "-run: error parsing regexp",
		"-run nothing-of-the-kind": "no workload matches",
		"-fast":                    "flag provided but not defined: -fast",
		"more":                     `unexpected argument "more"`,
	} {
		var out, told bytes.Buffer
		require.Equal(t, 2, command(strings.Fields(call), &out, &told), call)
		require.Empty(t, out.String(), call)
		require.Contains(t, told.String(), says, call)
		require.Equal(t, 1, strings.Count(told.String(), "\n"), told.String())
		require.True(t, strings.HasPrefix(told.String(), "bench: "), told.String())
	}
	require.Equal(t, 0, command([]string{"-h"}, io.Discard, io.Discard))
}

func TestMissingRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var told bytes.Buffer
	require.Equal(t, 2, command(nil, io.Discard, &told))
	require.Equal(t, "bench: redis-server is not on the PATH: apt-get install redis-server\n", told.String())
}

// What only some workloads gave does not take the place of the results that are kept.
func TestWhereResultsGo(t *testing.T) {
	needServer(t)
	for call, dir := range map[string]string{
		"":                   "results",
		"-rounds 1":          "results",
		"-redraw":            "results",
		"-quick":             "results-quick",
		"-run recovery/":     "results-quick",
		"-quick -out other":  "other",
		"-redraw -out other": "other",
	} {
		o, err := parse(strings.Fields(call), io.Discard)
		require.NoError(t, err, call)
		require.Equal(t, dir, o.out, call)
	}
}

// A directory that cannot be used is told in one line, before anything is measured.
func TestBadDirectories(t *testing.T) {
	needServer(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for call, says := range map[string]string{
		"-quick -out " + file:              "bench: -out: ",
		"-quick -out " + file + "/dir":     "bench: -out: ",
		"-redraw -out " + t.TempDir() + "": "bench: -redraw: ",
	} {
		var out, told bytes.Buffer
		require.Equal(t, 1, command(strings.Fields(call), &out, &told), call)
		require.Empty(t, out.String(), call)
		require.True(t, strings.HasPrefix(told.String(), says), told.String())
		require.Equal(t, 1, strings.Count(told.String(), "\n"), told.String())
	}
}

// A rival that is not installed is left out, and one line says so.
func TestLeftOut(t *testing.T) {
	needServer(t)
	bin := t.TempDir()
	real, err := exec.LookPath("redis-server")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(real, filepath.Join(bin, "redis-server")))
	t.Setenv("PATH", bin)
	o, err := parse([]string{"-run", "^uncontended/64$"}, io.Discard)
	require.NoError(t, err)
	require.Contains(t, o.leftOut, "Redisson, Redisson spin: java is not on the PATH: apt-get install maven openjdk-17-jdk-headless")
	require.Contains(t, o.leftOut, "etcd: etcd is not on the PATH: apt-get install etcd-server")
	require.Len(t, o.leftOut, 3)
	require.Len(t, o.workloads[0].subjects, 6)
}

// The quick run has only Go libraries on Redis.
func TestQuick(t *testing.T) {
	needServer(t)
	o, err := parse([]string{"-quick"}, io.Discard)
	require.NoError(t, err)
	require.Len(t, o.workloads, 3)
	require.Empty(t, o.leftOut)
	for _, w := range o.workloads {
		for _, s := range w.subjects {
			require.Nil(t, libraries[s.library].absent, s.name)
		}
	}
}

// A run writes its figures and a table of them, prints that, and can be drawn anew.
func TestRun(t *testing.T) {
	needServer(t)
	dir := filepath.Join(t.TempDir(), "new")
	var out, told bytes.Buffer
	call := []string{"-quick", "-run", "^uncontended/8$", "-time", "50ms", "-rounds", "2", "-out", dir}
	require.Equal(t, 0, command(call, &out, &told), told.String())
	require.Contains(t, told.String(), "uncontended/8, round 2 of 2: floor\n")
	table := filepath.Join(dir, "table.md")
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	require.Contains(t, string(text), out.String(), "what is printed is what is kept")
	require.Contains(t, out.String(), " p50 µs |", "processes say how long they waited")
	require.NoError(t, os.Remove(table))
	require.Equal(t, 0, command([]string{"-redraw", "-out", dir}, io.Discard, &told), told.String())
	again, err := os.ReadFile(table)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
}

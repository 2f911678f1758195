package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// requireRefused requires that a call says in one line what is wrong with it, before anything is measured.
func requireRefused(t *testing.T, status int, call, says string) {
	t.Helper()
	var out, told bytes.Buffer
	require.Equal(t, status, command(strings.Fields(call), &out, &told), call)
	require.Empty(t, out.String(), call)
	require.Regexp(t, `\Abench: [^\n]*`+regexp.QuoteMeta(says)+`[^\n]*\n\z`, told.String())
}

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
		requireRefused(t, 2, call, says)
	}
	require.Equal(t, 0, command([]string{"-h"}, io.Discard, io.Discard))
}

func TestMissingRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	requireRefused(t, 2, "", "redis-server is not on the PATH: apt-get install redis-server")
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
		require.Equal(t, dir, redistest.Must(parse(strings.Fields(call), io.Discard))(t).out, call)
	}
}

func TestBadDirectories(t *testing.T) {
	needServer(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for call, says := range map[string]string{
		"-quick -out " + file:          "-out: ",
		"-quick -out " + file + "/dir": "-out: ",
		"-redraw -out " + t.TempDir():  "-redraw: ",
	} {
		requireRefused(t, 1, call, says)
	}
}

// A rival that is not installed is left out, and one line says so.
func TestLeftOut(t *testing.T) {
	needServer(t)
	bin := t.TempDir()
	real := redistest.Must(exec.LookPath("redis-server"))(t)
	require.NoError(t, os.Symlink(real, filepath.Join(bin, "redis-server")))
	t.Setenv("PATH", bin)
	o := redistest.Must(parse([]string{"-run", "^uncontended/64$"}, io.Discard))(t)
	require.Contains(t, o.leftOut, "Redisson, Redisson spin: java is not on the PATH: apt-get install maven openjdk-17-jdk-headless")
	require.Contains(t, o.leftOut, "etcd: etcd is not on the PATH: apt-get install etcd-server")
	require.Len(t, o.leftOut, 3)
	require.Len(t, o.workloads[0].subjects, 6)
}

// The quick run has only Go libraries on Redis.
func TestQuick(t *testing.T) {
	needServer(t)
	o := redistest.Must(parse([]string{"-quick"}, io.Discard))(t)
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
	text := redistest.Must(os.ReadFile(table))(t)
	require.Contains(t, string(text), out.String(), "what is printed is what is kept")
	require.Contains(t, out.String(), " p50 µs |", "processes say how long they waited")
	require.NoError(t, os.Remove(table))
	require.Equal(t, 0, command([]string{"-redraw", "-out", dir}, io.Discard, &told), told.String())
	require.Equal(t, string(text), string(redistest.Must(os.ReadFile(table))(t)))
}

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
		"-quick -run fair/":        "no workload matches",
		"-fast":                    "flag provided but not defined: -fast",
		"-redraw -rounds 2":        "-redraw goes with no other flag than -out",
		"-again -run uncontended":  "-again goes with -resume and -run",
		"-again -resume":           "-again goes with -resume and -run",
		"more":                     `unexpected argument "more"`,
	} {
		var out, told bytes.Buffer
		require.Equal(t, 2, command(strings.Fields(call), &out, &told), call)
		require.Empty(t, out.String(), call)
		require.Contains(t, told.String(), says, call)
		require.Equal(t, 1, strings.Count(told.String(), "\n"), told.String())
		require.True(t, strings.HasPrefix(told.String(), "bench: "), told.String())
	}
	require.Equal(t, 2, command([]string{"-out", ""}, io.Discard, io.Discard))
	require.Equal(t, 0, command([]string{"-h"}, io.Discard, io.Discard))
}

func TestMissingRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var told bytes.Buffer
	require.Equal(t, 2, command(nil, io.Discard, &told))
	require.Equal(t, "bench: redis-server is not on the PATH\n", told.String())
}

// What only some workloads gave does not take the place of the results that are kept.
func TestWhereResultsGo(t *testing.T) {
	needServer(t)
	for call, dir := range map[string]string{
		"":                       "results",
		"-rounds 1":              "results",
		"-resume":                "results",
		"-resume -run recovery/": "results",
		"-redraw":                "results",
		"-quick":                 "results-quick",
		"-run recovery/":         "results-quick",
		"-quick -out other":      "other",
		"-redraw -out other":     "other",
	} {
		o, err := parse(strings.Fields(call))
		require.NoError(t, err, call)
		require.Equal(t, dir, o.out, call)
	}
}

// A directory that cannot be used is told in one line, before anything is measured.
func TestBadDirectories(t *testing.T) {
	needServer(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	empty := t.TempDir()
	for call, says := range map[string]string{
		"-quick -out " + file:          "bench: -out: ",
		"-quick -out " + file + "/dir": "bench: -out: ",
		"-resume -out " + empty:        "bench: -resume: ",
		"-redraw -out " + empty:        "bench: -redraw: ",
	} {
		var out, told bytes.Buffer
		require.Equal(t, 2, command(strings.Fields(call), &out, &told), call)
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
	o, err := parse([]string{"-run", "^uncontended/64$"})
	require.NoError(t, err)
	for _, name := range []string{etcdName, redissonName} {
		for _, s := range o.workloads[0].subjects {
			require.NotEqual(t, name, s.name)
		}
		require.Equal(t, 1, strings.Count(strings.Join(o.leftOut, "\n"), "is not on the PATH: apt-get install "+programs[name].from))
	}
	require.Len(t, o.workloads[0].subjects, 6)
}

// The quick run has only Go libraries on Redis.
func TestQuick(t *testing.T) {
	needServer(t)
	o, err := parse([]string{"-quick"})
	require.NoError(t, err)
	require.Len(t, o.workloads, 3)
	require.Empty(t, o.leftOut)
	for _, w := range o.workloads {
		for _, s := range w.subjects {
			require.Nil(t, s.needs, s.name)
		}
	}
}

// The table is made from the raw figures and from nothing else: those of the last
// real run, where they are there, and those of a run of this test.
func TestTableFromRaw(t *testing.T) {
	same := func(dir string) {
		r, err := loadReport(dir)
		require.NoError(t, err)
		table, err := os.ReadFile(filepath.Join(dir, tableFile))
		require.NoError(t, err)
		require.Equal(t, r.markdown(), string(table), "go run . -redraw -out %s", dir)
	}
	if _, err := os.Stat(filepath.Join(resultsDir, rawFile)); err == nil {
		same(resultsDir)
	}

	needServer(t)
	dir := filepath.Join(t.TempDir(), "new")
	var out, told bytes.Buffer
	call := []string{"-quick", "-run", "^uncontended/64$", "-time", "50ms", "-rounds", "2", "-out", dir}
	require.Equal(t, 0, command(call, &out, &told), told.String())
	same(dir)
	table, err := os.ReadFile(filepath.Join(dir, tableFile))
	require.NoError(t, err)
	require.Equal(t, string(table), out.String(), "what is printed is what is kept")
	require.Contains(t, told.String(), "left)")

	require.NoError(t, os.WriteFile(filepath.Join(dir, tableFile), nil, 0o600))
	require.Equal(t, 0, command([]string{"-redraw", "-out", dir}, io.Discard, &told), told.String())
	same(dir)

	text, err := os.ReadFile(filepath.Join(dir, rawFile))
	require.NoError(t, err)
	text = bytes.Replace(text, []byte(`"uncontended/64"`), []byte(`"gone"`), 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, rawFile), text, 0o600))
	_, err = loadReport(dir)
	require.ErrorContains(t, err, `no workload is named "gone" any more`)
}

// A run that was interrupted goes on with what it lacks, under the same terms only.
func TestResume(t *testing.T) {
	needServer(t)
	dir := t.TempDir()
	call := func(status int, args ...string) (told string) {
		t.Helper()
		var b bytes.Buffer
		args = append(args, "-quick", "-time", "50ms", "-out", dir)
		require.Equal(t, status, command(args, io.Discard, &b), &b)
		return b.String()
	}
	call(0, "-rounds", "1", "-run", "^uncontended/64$")
	first, err := loadReport(dir)
	require.NoError(t, err)
	call(0, "-rounds", "1", "-run", "^(uncontended|hot)/64", "-resume")
	both, err := loadReport(dir)
	require.NoError(t, err)
	require.Len(t, both.Workloads, 2)
	require.Equal(t, first.Workloads[0].Rounds, both.Workloads[0].Rounds)
	require.Contains(t, call(2, "-rounds", "2", "-run", "^(uncontended|hot)/64", "-resume"), "that run was another")

	raw := filepath.Join(dir, rawFile)
	text, err := os.ReadFile(raw)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte(`"Commit": "`+both.Commit), []byte(`"Commit": "earlier`), 1)
	require.NoError(t, os.WriteFile(raw, text, 0o600))
	require.Contains(t, call(2, "-rounds", "1", "-run", "^hot/64", "-resume"), "that run was another: commit earlier")
	call(0, "-rounds", "1", "-run", "^hot/64", "-resume", "-again")
	again, err := loadReport(dir)
	require.NoError(t, err)
	require.Len(t, again.Workloads, 2)
	require.Equal(t, "earlier", again.Commit)
	require.Equal(t, both.Workloads[0].Rounds, again.Workloads[0].Rounds)
	require.Empty(t, again.Workloads[0].Apart)
	require.Contains(t, again.Workloads[1].Apart, " at commit "+both.Commit)
	require.NotEqual(t, both.Workloads[1].Rounds, again.Workloads[1].Rounds)
	table, err := os.ReadFile(filepath.Join(dir, tableFile))
	require.NoError(t, err)
	require.Contains(t, string(table), "\nhot/64 × 0s: measured again on "+again.Workloads[1].Apart+"\n")
}

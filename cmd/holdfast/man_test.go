package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// prints runs a command that needs no Redis, and returns its output.
func prints(t *testing.T, args ...string) string {
	t.Helper()
	var out, errors strings.Builder
	require.Zero(t, execute(args, nil, &out, &errors), errors.String())
	return out.String()
}

func TestManWritesAPageForEachCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prints(t, "man", dir)
	want := []string{"holdfast.1"}
	for _, c := range newRoot().Commands() {
		want = append(want, "holdfast-"+c.Name()+".1")
	}
	files := redistest.Must(os.ReadDir(dir))(t)
	var got []string
	for _, f := range files {
		got = append(got, f.Name())
	}
	require.ElementsMatch(t, want, got)
	page := redistest.Must(os.ReadFile(filepath.Join(dir, "holdfast-run.1")))(t)
	for _, text := range []string{".TH", "fence-env", "79  the lock was lost", "HOLDFAST_PASSWORD", "holdfast(1)"} {
		require.Contains(t, string(page), text)
	}
	var out, errors strings.Builder
	require.Equal(t, statusRefused, execute([]string{"man", filepath.Join(dir, "none")}, nil, &out, &errors))
	require.Contains(t, errors.String(), "no such file")
}

func TestCompletionForEachShell(t *testing.T) {
	t.Parallel()
	for shell, begin := range map[string]string{"bash": "# bash completion V2 for holdfast", "zsh": "#compdef holdfast", "fish": "# fish completion for holdfast"} {
		require.True(t, strings.HasPrefix(prints(t, "completion", shell), begin), shell)
	}
}

// The last line is what the shell adds: ":4" nothing, ":0" files, ":16" directories.
func TestCompletes(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"sh":                       "show\tShow who holds a lock and who waits for it\n:4\n",
		"ls -o ":                   "table\njson\n:4\n",
		"show -o ":                 "text\njson\n:4\n",
		"doctor -o ":               "text\njson\n:4\n",
		"show ":                    ":4\n",
		"run ":                     ":4\n",
		"run k -- ":                ":0\n",
		"run k -- cat ":            ":0\n",
		"run --wait ":              ":4\n",
		"ls --password-file ":      ":0\n",
		"ls --redis rediss://h --": "",
		"man ":                     ":16\n",
	} {
		got := prints(t, append([]string{"__complete"}, strings.Split(words, " ")...)...)
		if want == "" {
			require.Contains(t, got, "--tls-ca\t")
			continue
		}
		require.Equal(t, want, got, words)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--version", "-version"} {
		require.Regexp(t, `^holdfast \S+.*, go1\.`, prints(t, flag))
	}
	require.Equal(t, "unknown", version(nil, false))
	about := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"}}
	require.Equal(t, "v1.2.3, go1.26", version(about, true))
	about.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "c0ffee"}, {Key: "vcs.modified", Value: "true"}}
	about.Main.Version = ""
	require.Equal(t, "(devel), commit c0ffee with changes, go1.26", version(about, true))
}

func TestPageNamesAllFlagsAndStatuses(t *testing.T) {
	t.Parallel()
	text := redistest.Must(os.ReadFile("../../docs/command.md"))(t)
	page := string(text)
	root := newRoot()
	for _, c := range append(root.Commands(), root) {
		require.Contains(t, page, "holdfast "+strings.TrimPrefix(c.Name(), "holdfast"))
		named := func(f *pflag.Flag) {
			require.Regexp(t, "--"+f.Name+`\b|\W-`+cmp.Or(f.Shorthand, f.Name)+` `, page, c.Name())
		}
		c.Flags().VisitAll(named)
		c.PersistentFlags().VisitAll(named)
	}
	for _, status := range []int{statusUsage, statusAway, statusRefused, statusNotAcquired, statusLost} {
		require.Contains(t, page, fmt.Sprintf("\n| %d | ", status))
		require.Contains(t, newRun(&server{}).Long, fmt.Sprintf("\n   %d  ", status))
	}
	require.Contains(t, page, fmt.Sprintf("\n| %d, %d | ", statusNotRunnable, statusNotFound))
	require.Contains(t, newDoctor(&server{}).Long, fmt.Sprintf(" and %d if ", statusHurts))
	require.Contains(t, page, fmt.Sprintf("hurts, %d if ", statusHurts))
}

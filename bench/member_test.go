package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// endsName is a library whose processes end before they are ready.
const endsName = "ends"

func init() {
	libraries[endsName] = func(string, time.Duration) (locker, error) {
		fmt.Fprintln(os.Stderr, "nothing works here")
		os.Exit(3)
		return nil, nil
	}
}

// A process that does not start is no fault of the library's: it is told with its
// log, and makes the run fail.
func TestChildThatDoesNotStart(t *testing.T) {
	_, err := startMember(childTask{Library: endsName})
	require.ErrorIs(t, err, errNotStarted)
	require.ErrorContains(t, err, "nothing works here")
}

// agentOf is an agent whose java is a shell script.
func agentOf(t *testing.T, script string) *agent {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "java"), []byte("#!/bin/sh\n"+script), 0o700))
	t.Setenv("PATH", bin)
	a, err := startAgent(0)
	require.NoError(t, err)
	t.Cleanup(a.stop)
	return a
}

func TestJavaThatDoesNotStart(t *testing.T) {
	a := agentOf(t, "echo no such class >&2\nexit 1\n")
	err := a.take(childTask{}, redissonLocks[redissonName])
	require.ErrorIs(t, err, errNotStarted)
	require.ErrorContains(t, err, "no such class")
}

// One that has worked and then ends is the library's.
func TestJavaThatEnds(t *testing.T) {
	a := agentOf(t, "read task\necho '\"ready\"'\nread task\nexit 1\n")
	require.NoError(t, a.take(childTask{}, redissonLocks[redissonName]))
	err := a.take(childTask{}, redissonLocks[redissonName])
	require.Error(t, err)
	require.NotErrorIs(t, err, errNotStarted)
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// anybody gives every key to everybody, in each process.
type anybody struct{}

const anybodyName = "anybody"

func init() {
	libraries[anybodyName] = &library{open: func(task) locker { return anybody{} }}
}

func (anybody) cycle(string) func(func()) error {
	return func(inside func()) error {
		inside()
		return nil
	}
}

func (a anybody) campaign(group string) func(func()) error { return a.cycle(group) }

func (anybody) try(string) (bool, error) { return true, nil }

func (anybody) close() {}

// Sections that overlap in two processes are found, although each process has one at a time.
func TestProcessesWithoutExclusion(t *testing.T) {
	s := emptyServer(t)
	var err error
	for d := 50 * time.Millisecond; d < time.Minute && err == nil; d *= 10 { // on a busy machine, one may end before the other begins
		hot := subject{library: anybodyName, run: fleet{1, 1}.does(task{Hot: true, Section: time.Millisecond})}
		_, err = hot.measure(s, d)
	}
	require.ErrorContains(t, err, errBroken.Error())
	own := subject{library: anybodyName, run: fleet{1, 1}.does(task{Section: time.Millisecond})}
	redistest.Must(own.measure(s, 50*time.Millisecond))(t)
}

// A Java process counts in the same file.
func TestJavaWithoutExclusion(t *testing.T) {
	needRival(t, "Redisson")
	defer stopJava()
	s := emptyServer(t)
	path := insideFile()
	count := mapCount(path)
	for _, c := range []struct {
		library     string
		shared      int
		room, taken int64 // by others
	}{
		{"Redisson", 0, 0, 1},
		{"Redisson read/write", 0, 8, 1},
		{"Redisson read/write", 100, 8, 8},
		{"Redisson permits", 100, 8, 8},
		{"Redisson semaphore", 100, 8, 8},
	} {
		require.NoError(t, s.empty())
		count.Store(c.taken)
		w := redistest.Must(startWorker(task{
			Role: "load", Addrs: s.addrs(), Library: c.library, Hot: true, Shared: c.shared, Room: c.room,
			Processes: 2, Goroutines: 1, Duration: 100 * time.Millisecond, Inside: path,
		}))(t)
		w.begin(time.Now(), 0)
		_, err := w.hear()
		crew{w}.end()
		require.ErrorContains(t, err, errBroken.Error(), c)
	}
}

// endsName is a library whose processes end before they are ready.
const endsName = "ends"

func init() {
	libraries[endsName] = &library{open: func(task) locker {
		fmt.Fprintln(os.Stderr, "nothing works here")
		os.Exit(3)
		return nil
	}}
}

// A process that does not start is no fault of the library's: the error has its log, and makes
// the run fail.
func TestWorkerThatDoesNotStart(t *testing.T) {
	_, err := startWorker(task{Role: "load", Library: endsName})
	require.ErrorIs(t, err, errNotStarted)
	require.ErrorContains(t, err, "nothing works here")
}

// javaOf is a worker whose java is a shell script.
func javaOf(t *testing.T, script string) *worker {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "java"), []byte("#!/bin/sh\n"+script), 0o700))
	t.Setenv("PATH", bin)
	w := redistest.Must(startJava())(t)
	t.Cleanup(w.stop)
	return w
}

func TestJavaThatDoesNotStart(t *testing.T) {
	err := javaOf(t, "echo no such class >&2\nexit 1\n").take(task{})
	require.ErrorIs(t, err, errNotStarted)
	require.ErrorContains(t, err, "no such class")
}

// One that ends after it has worked is the library's fault.
func TestJavaThatEnds(t *testing.T) {
	w := javaOf(t, "read task\necho '{}'\nread task\nexit 1\n")
	require.NoError(t, w.take(task{}))
	err := w.take(task{})
	require.Error(t, err)
	require.NotErrorIs(t, err, errNotStarted)
}

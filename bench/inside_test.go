package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// anybody gives every key to everybody, in each process.
type anybody struct{}

const anybodyName = "anybody"

func init() {
	libraries[anybodyName] = func(string, time.Duration) (locker, error) { return anybody{}, nil }
}

func (anybody) cycle(string) func(func()) error {
	return func(inside func()) error {
		inside()
		return nil
	}
}

func (anybody) hold(string) (lease, error)   { return anybody{}, nil }
func (anybody) Err() error                   { return nil }
func (anybody) Unlock(context.Context) error { return nil }
func (anybody) close()                       {}

// Sections that overlap in two processes are found out, where each process alone has
// one at a time.
func TestProcessesWithoutExclusion(t *testing.T) {
	needServer(t)
	s, err := startServer()
	require.NoError(t, err)
	defer s.stop()
	_, err = crew{1, 1}.subject(anybodyName, anybodyName, work{hot: true, section: time.Millisecond}).run(s, 50*time.Millisecond)
	require.ErrorContains(t, err, errBroken.Error())
	_, err = crew{1, 1}.subject(anybodyName, anybodyName, work{section: time.Millisecond}).run(s, 50*time.Millisecond)
	require.NoError(t, err, "keys of their own")
}

// A Java process counts in the same file.
func TestJavaWithoutExclusion(t *testing.T) {
	needServer(t)
	needRival(t, redissonName)
	defer stopAgents()
	s, err := startServer()
	require.NoError(t, err)
	defer s.stop()
	path, remove, err := insideFile()
	require.NoError(t, err)
	defer remove()
	count, err := counts(path)
	require.NoError(t, err)
	count.Store(1) // somebody is inside
	m, err := startMember(childTask{
		Addr: s.addr, Library: redissonName, Hot: true, Place: place{0, 2, 1}, Duration: 100 * time.Millisecond, Inside: path,
	})
	require.NoError(t, err)
	defer leave(m)
	require.NoError(t, m.begin(time.Now()))
	_, err = m.result()
	require.ErrorContains(t, err, errBroken.Error())
}

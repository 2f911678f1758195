package main

import (
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/stretchr/testify/require"
)

// redsync takes, refuses, prolongs and releases by rueidis, also after the server has forgotten
// its scripts.
func TestRedsyncByRueidis(t *testing.T) {
	s := emptyServer(t)
	l := openRedsync(task{Addrs: s.addrs(), Lease: time.Minute}).(*redsyncer)
	defer l.close()

	m := l.mutex("key")
	require.NoError(t, m.Lock())
	left := s.masters[0].Do(t, "PTTL", "key")
	ms, err := left.AsInt64()
	require.NoError(t, err)
	require.InDelta(t, 60_000, ms, 5000)
	got, err := l.try("key")
	require.NoError(t, err)
	require.False(t, got)
	s.masters[0].Do(t, "SCRIPT", "FLUSH")
	prolonged, err := m.Extend()
	require.NoError(t, err)
	require.True(t, prolonged)
	released, err := m.Unlock()
	require.NoError(t, err)
	require.True(t, released)
	_, err = m.Unlock()
	require.ErrorIs(t, err, redsync.ErrLockAlreadyExpired)
	got, err = l.try("key")
	require.NoError(t, err)
	require.True(t, got)
}

package main

import (
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// redsync takes, refuses, prolongs and releases by rueidis, also after the server has forgotten
// its scripts.
func TestRedsyncByRueidis(t *testing.T) {
	s := emptyServer(t)
	l := openRedsync(task{Addrs: s.addrs(), Lease: time.Minute}).(*redsyncer)
	defer l.close()

	m := l.mutex("key")
	require.NoError(t, m.Lock())
	require.InDelta(t, 60_000, redistest.Must(s.masters[0].Do(t, "PTTL", "key").AsInt64())(t), 5000)
	require.False(t, redistest.Must(l.try("key"))(t))
	s.masters[0].Do(t, "SCRIPT", "FLUSH")
	require.True(t, redistest.Must(m.Extend())(t), "prolonged")
	require.True(t, redistest.Must(m.Unlock())(t), "released")
	_, err := m.Unlock()
	require.ErrorIs(t, err, redsync.ErrLockAlreadyExpired)
	require.True(t, redistest.Must(l.try("key"))(t))
}

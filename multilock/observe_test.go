package multilock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

// The observer of a locker is told of each key once, whether one call takes all keys or not.
func TestLockAll_IsObserved(t *testing.T) {
	server := redistest.Start(t)
	var mu sync.Mutex
	var told []string
	note := func(what, key string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, what+" "+key)
	}
	l, err := rlock.New(server.Client(t), rlock.WithLease(time.Second), rlock.WithObserver(holdfast.Observer{
		Acquired: func(e holdfast.AcquiredEvent) { note(string(e.How), e.Key) },
		Refused: func(e holdfast.RefusedEvent) {
			if e.Waited <= 0 || e.Waited > time.Minute {
				note("strange wait", e.Key)
			}
			note("refused", e.Key)
		},
		Released: func(e holdfast.ReleasedEvent) { note("released", e.Key) },
	}))
	require.NoError(t, err)
	other, err := rlock.New(server.Client(t))
	require.NoError(t, err)
	defer other.Close()

	keys := multilock.Keys(l, "a", "b")
	set, err := multilock.LockAll(t.Context(), keys)
	require.NoError(t, err)
	require.NoError(t, set.Unlock(t.Context()))
	their, err := other.Lock(t.Context(), "b")
	require.NoError(t, err)
	_, err = multilock.TryLockAll(t.Context(), keys)
	require.ErrorIs(t, err, holdfast.ErrNotAcquired)
	require.NoError(t, their.Unlock(t.Context()))
	server.Kill()
	_, err = multilock.TryLockAll(t.Context(), keys)
	require.Error(t, err)
	_ = l.Close()
	require.Equal(t, []string{
		"call a", "call b", "released b", "released a",
		"call a", "refused b", "released a",
		"refused a",
	}, told)
}

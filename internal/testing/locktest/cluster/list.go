package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	slots "github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// testLocks lists thousands of locks of three masters: all of them, those that stay where they are
// while slots move, and those of the others while one master hangs, which the error names.
func testLocks(t *testing.T, k locktest.Kind) {
	c := redistest.StartCluster(t, 3, 0, "--cluster-node-timeout", "60000")
	client := c.Client(t)
	l := k.Open(t, client, locktest.Options{Lease: locktest.Long})
	keys := spread(6000)
	each(keys, func(key string) {
		client.Do(t.Context(), client.B().Hset().Key(key).FieldValue().FieldValue(locktest.Java, "1").Build())
	})
	once := func(prefix string, during func(seen int)) (seen map[string]bool, failed []error) {
		t.Helper()
		seen = map[string]bool{}
		for s, err := range l.Locks(t.Context(), prefix) {
			if err != nil {
				failed = append(failed, err)
				continue
			}
			require.False(t, seen[s.Key], s.Key)
			seen[s.Key] = true
			during(len(seen))
		}
		return seen, failed
	}
	away := 0 // masters that hang
	list := func(prefix string, during func(seen int)) (seen map[string]bool, failed []error) {
		t.Helper()
		seen, failed = once(prefix, during)
		for tries := 1; len(failed) > away && tries < 5; tries++ { // a master of a slow machine answers too late
			seen, failed = once(prefix, during)
		}
		return seen, failed
	}
	nothing := func(int) {}
	all, failed := list("key:", nothing)
	require.Empty(t, failed)
	require.Len(t, all, len(keys))
	few, failed := list("key:1", nothing)
	require.Empty(t, failed)
	require.Len(t, few, 1+10+100+1000)

	moved := map[uint16]bool{}
	all, failed = list("key:", func(seen int) {
		if seen%200 == 0 {
			key := keys[seen/200]
			if to := c.Masters(t)[seen/200%3]; c.Owner(t, key) != to {
				c.Migrate(t, c.Slot(t, key), to)
				moved[slots.Slot(key)] = true
			}
		}
	})
	require.Empty(t, failed)
	require.NotEmpty(t, moved)
	for _, key := range keys {
		if !all[key] {
			require.True(t, moved[slots.Slot(key)], key)
		}
	}

	hung := c.Owner(t, "key:0")
	hung.Pause()
	away = 1
	all, failed = list("key:", nothing)
	hung.Resume()
	require.Len(t, failed, 1)
	require.ErrorContains(t, failed[0], hung.Addr())
	now := slots.New(client)
	require.NoError(t, now.Refresh(t.Context()))
	for _, key := range keys {
		require.Equal(t, now.Node(key) != hung.Addr(), all[key], key)
	}
}

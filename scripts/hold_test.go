package scripts

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// A PTTL that has run down to 0 while the key still stands must not read as
// "acquired".
func TestG1_LastMillisecondIsNotAcquired(t *testing.T) {
	s, n := start(t)
	for range 20 {
		s.Do(t, "HSET", "k", ownA, "1")
		s.Do(t, "PEXPIRE", "k", "3")
		for free := false; !free; {
			a, err := n.Acquire(bounded(t), "k", ownB, lease)
			require.NoError(t, err)
			if free = a.OK; !free {
				require.GreaterOrEqual(t, a.Remaining, time.Millisecond)
				continue
			}
			h, err := n.Inspect(bounded(t), "k")
			require.NoError(t, err)
			require.Equal(t, ownB, h.Owner)
		}
		s.Do(t, "DEL", "k")
	}
}

// All or none; a repeat finds what the first has taken.
func TestAcquireAll(t *testing.T) {
	s, n := start(t)
	ctx, keys := bounded(t), []string{"a", "b", "c"}
	mine, theirs := []string{ownA + "1", ownA + "2", ownA + "3"}, []string{ownB + "1", ownB + "2", ownB + "3"}
	ok, err := n.AcquireAll(ctx, keys, mine, lease)
	require.NoError(t, err)
	require.True(t, ok)
	for i, key := range keys {
		h, err := n.Inspect(ctx, key)
		require.NoError(t, err)
		require.Equal(t, mine[i], h.Owner)
		require.Equal(t, 1, h.Entries)
		require.Greater(t, h.Remaining, lease-5*time.Second)
	}
	before := state(t, s)
	ok, err = n.AcquireAll(ctx, keys, mine, lease)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, before, state(t, s))

	_, err = n.Release(ctx, "a", mine[0], 0)
	require.NoError(t, err)
	_, err = n.CleanUp(ctx, "c", mine[2])
	require.NoError(t, err)
	before = state(t, s)
	for _, owners := range [][]string{theirs, mine} { // b is held; c's owner has been given up
		ok, err = n.AcquireAll(ctx, keys, owners, lease)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, before, state(t, s))
	}
	_, err = n.AcquireAll(ctx, keys, mine[:2], lease)
	require.Equal(t, Refused, OutcomeOf(err))
	_, err = n.AcquireAll(ctx, nil, nil, lease)
	require.Equal(t, Refused, OutcomeOf(err))
}

// A repeat that is refused PEXPIRE gives back what it took, and not what it found.
func TestF32_AcquireAllRefusedLeavesNothing(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	before := state(t, s)
	s.Do(t, "ACL", "SETUSER", "least", "on", ">secret", "~*", "+@all", "-pexpire")
	least := NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "least", "secret" }))
	_, err := least.AcquireAll(bounded(t), []string{"k", "l", "m"}, []string{ownA, ownA, ownA}, lease)
	require.Equal(t, Refused, OutcomeOf(err))
	require.Equal(t, before, state(t, s))
}

func TestRecount(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	until := expiry(t, s, "k")
	for _, entries := range []int{2, 3, 3, 1} {
		ours, err := n.Recount(bounded(t), "k", ownA, entries)
		require.NoError(t, err)
		require.True(t, ours)
		h, err := n.Inspect(bounded(t), "k")
		require.NoError(t, err)
		require.Equal(t, entries, h.Entries)
	}
	require.Equal(t, until, expiry(t, s, "k"), "a nested entry touches no expiry")
}

func TestReleaseEndsAnyCount(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	_, err := n.Recount(bounded(t), "k", ownA, 7)
	require.NoError(t, err)
	r, err := n.Release(bounded(t), "k", ownA, 0)
	require.NoError(t, err)
	require.Equal(t, Released{Ours: true}, r)
	require.Empty(t, state(t, s))
}

func TestG6_OnlyTheOwner(t *testing.T) {
	s, n := start(t)
	for _, stranger := range []string{ownB, ownA[:len(ownA)-1], ownA + " ", "*", "mode"} {
		acquired(t, n, "k", ownA)
		before := state(t, s)
		ctx := bounded(t)

		r, err := n.Release(ctx, "k", stranger, 0)
		require.NoError(t, err)
		require.Equal(t, Released{}, r)
		r, err = n.Release(ctx, "k", stranger, 1)
		require.NoError(t, err)
		require.Equal(t, Released{}, r)
		ours, err := n.Recount(ctx, "k", stranger, 5)
		require.NoError(t, err)
		require.False(t, ours)
		answers := []Answer{Renewed}
		require.NoError(t, n.Renew(ctx, time.Hour, []string{"k"}, []string{stranger}, answers))
		require.Equal(t, []Answer{NotOurs}, answers)
		require.Equal(t, before, state(t, s))

		r, err = n.CleanUp(ctx, "k", stranger)
		require.NoError(t, err)
		require.Equal(t, Released{}, r)
		s.Do(t, "DEL", tombstone("k", stranger))
		require.Equal(t, before, state(t, s))
		s.Do(t, "FLUSHALL")
	}
}

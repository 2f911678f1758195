package scripts

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestAcquireFree(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	left := integerOf(t, s.Do(t, "PTTL", "k"))
	require.LessOrEqual(t, left, lease.Milliseconds())
	require.Greater(t, left, lease.Milliseconds()-5000)
}

func TestAcquireHeldByAnother(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	before := state(t, s)
	a, err := n.Acquire(bounded(t), "k", ownB, lease)
	require.NoError(t, err)
	require.False(t, a.OK || a.Gone)
	require.Positive(t, a.Remaining)
	require.LessOrEqual(t, a.Remaining, lease)
	require.Equal(t, before, state(t, s))

	s.Do(t, "PERSIST", "k")
	a, err = n.Acquire(bounded(t), "k", ownB, lease)
	require.NoError(t, err)
	require.Equal(t, Acquired{Remaining: NoExpiry}, a)
}

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

func TestReleaseTellsTheListeners(t *testing.T) {
	s, n := start(t)
	listener, stop := s.Client(t).Dedicate()
	t.Cleanup(stop)
	received := make(chan rueidis.PubSubMessage, 8)
	gone := listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { received <- m }})
	require.NoError(t, listener.Do(bounded(t), listener.B().Subscribe().Channel(Channel("k")).Build()).Error())

	hear := func() {
		t.Helper()
		select {
		case m := <-received:
			require.Equal(t, "redisson_lock__channel:{k}", m.Channel)
			require.Equal(t, "0", m.Message)
		case err := <-gone:
			t.Fatal(err)
		}
	}
	acquired(t, n, "k", ownA)
	r, err := n.Release(bounded(t), "k", ownA, 0)
	require.NoError(t, err)
	require.Equal(t, Released{Ours: true, Listeners: 1}, r)
	hear()

	acquired(t, n, "k", ownA)
	r, err = n.CleanUp(bounded(t), "k", ownA)
	require.NoError(t, err)
	require.Equal(t, Released{Ours: true, Listeners: 1}, r)
	hear()

	acquired(t, n, "k", ownB)
	existed, err := n.ForceRelease(bounded(t), "k")
	require.NoError(t, err)
	require.True(t, existed)
	hear()

	existed, err = n.ForceRelease(bounded(t), "k")
	require.NoError(t, err)
	require.False(t, existed)
	r, err = n.Release(bounded(t), "k", ownA, 0)
	require.NoError(t, err)
	require.Equal(t, Released{}, r)
	_, err = n.Release(bounded(t), "k", ownA, 1)
	require.NoError(t, err)
	_, err = n.CleanUp(bounded(t), "k", ownA)
	require.NoError(t, err)
	s.Do(t, "PUBLISH", Channel("k"), "end")
	require.Equal(t, "end", (<-received).Message, "nothing was released, so nobody is notified")
}

func TestInspect(t *testing.T) {
	s, n := start(t)
	h, err := n.Inspect(bounded(t), "k")
	require.NoError(t, err)
	require.Equal(t, Holder{}, h)

	acquired(t, n, "k", ownA)
	h, err = n.Inspect(bounded(t), "k")
	require.NoError(t, err)
	require.Equal(t, ownA, h.Owner)
	require.Equal(t, 1, h.Entries)
	require.InDelta(t, lease, h.Remaining, float64(slack))

	s.Do(t, "PERSIST", "k")
	h, err = n.Inspect(bounded(t), "k")
	require.NoError(t, err)
	require.Equal(t, Holder{Owner: ownA, Entries: 1, Remaining: NoExpiry}, h)
}

func TestF7_LateAcquireFindsTheTombstone(t *testing.T) {
	s, n := start(t)
	for name, late := range map[string]func(context.Context) (Acquired, error){
		"plain": func(ctx context.Context) (Acquired, error) { return n.Acquire(ctx, "k", ownA, lease) },
		"fenced": func(ctx context.Context) (Acquired, error) {
			return n.AcquireFenced(ctx, "k", ownA, lease, Fencing{Reserve: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := n.CleanUp(bounded(t), "k", ownA)
			require.NoError(t, err)
			require.Equal(t, Released{}, r)
			before := state(t, s)

			a, err := late(bounded(t))
			require.NoError(t, err)
			require.Equal(t, Acquired{Gone: true}, a)
			require.Equal(t, before, state(t, s))

			acquired(t, n, "k", ownB) // it bars its owner only
			a, err = late(bounded(t))
			require.NoError(t, err)
			require.Equal(t, Acquired{Gone: true}, a)
			s.Do(t, "FLUSHALL")
		})
	}
}

func TestG5_RepeatsChangeNothing(t *testing.T) {
	s, n := start(t)
	ctx := bounded(t)
	acquired(t, n, "k", ownA)
	_, err := n.Recount(ctx, "k", ownA, 2)
	require.NoError(t, err)
	before := state(t, s)
	acquired(t, n, "k", ownA)
	_, err = n.Recount(ctx, "k", ownA, 2)
	require.NoError(t, err)
	require.Equal(t, before, state(t, s), "count and expiry are those of the first")

	for range 2 {
		_, err = n.CleanUp(ctx, "k", ownA)
		require.NoError(t, err)
		require.Len(t, state(t, s), 1, "the tombstone")
	}
	acquired(t, n, "k", ownB)
	r, err := n.Release(ctx, "k", ownB, 0)
	require.NoError(t, err)
	require.True(t, r.Ours)
	r, err = n.Release(ctx, "k", ownB, 0)
	require.NoError(t, err)
	require.False(t, r.Ours)
}

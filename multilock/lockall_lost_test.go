package multilock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/scripts"
)

// A lease that is lost ends the set, and the wait for the keys behind it.
func TestLockAll_IsLostWithOneLease(t *testing.T) {
	s := newSets(t)
	set, err := multilock.LockAll(t.Context(), s.keys("a"))
	require.NoError(t, err)
	bound := set.Bind(t.Context())
	_, err = s.queued.ForceUnlock(t.Context(), "a")
	require.NoError(t, err)
	<-set.Done()
	<-bound.Done()
	require.ErrorIs(t, context.Cause(bound), multilock.ErrLost)
	require.ErrorIs(t, set.Err(), multilock.ErrLost)
	require.ErrorIs(t, set.Unlock(t.Context()), multilock.ErrLost)
	s.free("a")

	their, err := open(t, s.nodes).Lock(t.Context(), "a")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := multilock.LockAll(t.Context(), s.keys("a"))
		done <- err
	}()
	eventually(t, func() bool { // it has the others, and waits for the last
		reply := s.nodes[0].Do(t, "PUBSUB", "NUMSUB", scripts.Channel("a"))
		m, err := reply.AsIntMap()
		return err == nil && m[scripts.Channel("a")] > 0
	})
	_, err = s.plain.ForceUnlock(t.Context(), "a")
	require.NoError(t, err)
	require.ErrorIs(t, <-done, multilock.ErrLost)
	require.NoError(t, their.Unlock(t.Context()))
	s.free("a")
}

// A set ends no later than the first of its leases, wherever that is in the order.
func TestLockAll_EndsWithItsShortestLease(t *testing.T) {
	server := redistest.Start(t)
	keyOf := func(name string, lease time.Duration) multilock.KeySet {
		l, err := rlock.New(server.Client(t), rlock.WithLease(lease))
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return multilock.Keys(l, name).OrderName(name)
	}
	for _, shortest := range []string{"a", "b", "c"} {
		var keys multilock.KeySet
		for _, name := range []string{"a", "b", "c"} {
			lease := time.Hour
			if name == shortest {
				lease = time.Minute
			}
			keys = keys.And(keyOf(name, lease))
		}
		set, err := multilock.LockAll(t.Context(), keys)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Until(set.Deadline()), time.Minute, shortest)
		require.NoError(t, set.Unlock(t.Context()))
	}
}

// After a lost answer to the one call for all keys, it is not known whether they are held.
func TestF6_LockAll_AnswerLost(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	l, err := rlock.New(server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }))
	require.NoError(t, err)
	defer l.Close()
	keys := multilock.Keys(l, "a", "b")
	set, err := multilock.LockAll(t.Context(), keys)
	require.NoError(t, err)
	require.NoError(t, set.Unlock(t.Context()))

	both := func(cmd []string) bool { return slices.Contains(cmd, "a") && slices.Contains(cmd, "b") }
	proxy.SwallowReply(1, both)
	_, err = multilock.TryLockAll(t.Context(), keys)
	require.ErrorIs(t, err, multilock.ErrUnknown)
	require.NotErrorIs(t, err, multilock.ErrNotAcquired)

	proxy.OnReply(func(cmd []string) redistest.Verdict {
		if both(cmd) {
			return redistest.Hold
		}
		return redistest.Pass
	})
	began := time.Now()
	_, err = multilock.TryLockAllFor(t.Context(), keys, 500*time.Millisecond)
	require.Less(t, time.Since(began), 5*time.Second, "not much longer than the call itself")
	require.ErrorIs(t, err, multilock.ErrUnknown)
	require.NotErrorIs(t, err, multilock.ErrNotAcquired)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	proxy.OnReply(nil)
	proxy.Release()
	set, err = multilock.LockAll(t.Context(), keys)
	require.NoError(t, err)
	require.NoError(t, set.Unlock(t.Context()))
}

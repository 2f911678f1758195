// Package lockclienttest is what the tests of adapters for other clients share.
package lockclienttest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// Open returns a locker on the client that newClient makes.
func Open(t *testing.T, newClient func() (rueidis.Client, error), opts ...holdfast.Option) *rlock.Locker {
	t.Helper()
	client, err := newClient()
	for tries := 1; tries < 5 && errors.Is(err, holdfast.ErrUnavailable); tries++ { // a busy machine does not shake hands in time
		client, err = newClient()
	}
	require.NoError(t, err)
	t.Cleanup(client.Close)
	locker := redistest.Must(rlock.New(client, opts...))(t)
	t.Cleanup(func() { require.NoError(t, locker.Close()) })
	return locker
}

// Excludes requires that one of two lockers waits for the other, for each of some keys.
func Excludes(t *testing.T, one, other holdfast.Locker, keys ...string) {
	t.Helper()
	for _, key := range keys {
		ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
		defer cancel()
		held, err := one.Lock(ctx, key)
		require.NoError(t, err)
		_, err = other.TryLock(ctx, key)
		for errors.Is(err, holdfast.ErrUnavailable) && ctx.Err() == nil { // its client may not know yet of a failover
			time.Sleep(10 * time.Millisecond)
			_, err = other.TryLock(ctx, key)
		}
		require.ErrorIs(t, err, holdfast.ErrNotAcquired)
		waiting := make(chan error, 1)
		go func() { waiting <- other.Do(ctx, key, func(context.Context) error { return nil }) }()
		require.NoError(t, held.Unlock(ctx))
		require.NoError(t, <-waiting)
	}
}

// User gives a server a user that may do what locks need.
func User(t *testing.T, s *redistest.Server, rules ...string) {
	t.Helper()
	s.Do(t, append([]string{"ACL", "SETUSER", "shop", "on", "~*", "&*", "+@all"}, rules...)...)
}

// Sentinels starts a Sentinel set that knows the user of [User], and whose Sentinels only know the user watch with the
// password seen. It returns their addresses, too.
func Sentinels(t *testing.T) (s *redistest.Sentinel, addrs []string) {
	t.Helper()
	s = redistest.StartSentinel(t)
	for _, one := range s.Sentinels() {
		one.Do(t, "ACL", "SETUSER", "watch", "on", ">seen", "allchannels", "+@all")
		addrs = append(addrs, one.Addr())
	}
	for _, one := range append(s.Replicas(), s.Master()) {
		User(t, one, ">secret")
	}
	return s, addrs
}

// Suits requires that the client locks has made few connections, by its user, to its database and without a cache.
func Suits(t *testing.T, s *redistest.Server) {
	t.Helper()
	mine := Connections(t, s, "locks")
	require.NotEmpty(t, mine)
	require.LessOrEqual(t, len(mine), 2, "one for calls, one for subscriptions")
	for _, c := range mine {
		require.Contains(t, c, " db=3 ")
		require.Contains(t, c, " user=shop ")
		require.NotContains(t, c, " flags=t", "no tracking")
	}
}

// Rotates changes the password of a user on the server, and then what open's client knows of it: a lease lives on and is
// renewed, a waiter gets its lock, and so do new calls.
func Rotates(t *testing.T, open func(s *redistest.Server, password *atomic.Value, opts ...holdfast.Option) *rlock.Locker) {
	s := redistest.Start(t)
	User(t, s, ">old")
	var password atomic.Value
	password.Store("old")
	locker := open(s, &password, holdfast.WithLease(20*time.Second))
	other := Open(t, func() (rueidis.Client, error) { return s.Client(t), nil })
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	kept, held := redistest.Must(locker.Lock(ctx, "kept"))(t), redistest.Must(other.Lock(ctx, "k"))(t)
	waiting := make(chan error, 1)
	go func() { waiting <- locker.Do(ctx, "k", func(context.Context) error { return nil }) }()
	const channel = "redisson_lock__channel:{k}"
	require.Eventually(t, func() bool {
		return redistest.Must(s.Do(t, "PUBSUB", "NUMSUB", channel).AsIntMap())(t)[channel] == 1
	}, redistest.Patience, time.Millisecond)

	was := kept.Deadline()
	User(t, s, "resetpass", ">new")
	password.Store("new")
	s.Do(t, "CLIENT", "KILL", "USER", "shop")
	require.Eventually(t, func() bool { return kept.Deadline().After(was) }, redistest.Patience, time.Millisecond)
	require.NoError(t, held.Unlock(ctx))
	require.NoError(t, <-waiting)
	require.NoError(t, kept.Err())
	require.NoError(t, kept.Unlock(ctx))
	Excludes(t, locker, other, "another")
}

// Connections are the lines of CLIENT LIST with that name.
func Connections(t *testing.T, s *redistest.Server, name string) (all []string) {
	t.Helper()
	list := s.Do(t, "CLIENT", "LIST")
	text, err := list.ToString()
	require.NoError(t, err)
	for line := range strings.Lines(text) {
		if strings.Contains(line, " name="+name+" ") {
			all = append(all, line)
		}
	}
	return all
}

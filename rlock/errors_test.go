package rlock_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// The error of a Redis that can be reached and does not answer names it.
func TestErrors_NameTheServer(t *testing.T) {
	kind.InVirtualTime(t).Try(t, func(t *testing.T, k locktest.Kind) {
		r := locktest.NewHarnessOn(t, k, k.Start(t), locktest.Options{Lease: 3 * time.Second})
		r.Proxy.HoldReplies(true)
		_, err := r.Locker.TryLock(t.Context(), "k")
		require.EqualError(t, err, fmt.Sprintf(`holdfast: lock "k": outcome unknown: %s: no answer in time`, r.Proxy.Addr()))
		r.Proxy.HoldReplies(false)

		lease := locktest.Lock(t, r.Locker, t.Context(), "k")
		r.Proxy.HoldRequests(true)
		require.EqualError(t, lease.Unlock(t.Context()), fmt.Sprintf(`holdfast: unlock "k": outcome unknown: %s: no answer in time`, r.Proxy.Addr()))
		r.Proxy.HoldRequests(false)
	})
}

// The log tells of holds and waits longer than a lease, which explain why a program stands
// still.
func TestErrors_LongHoldsAndWaitsAreLogged(t *testing.T) {
	kind.InVirtualTime(t).Try(t, func(t *testing.T, k locktest.Kind) {
		var log redistest.Log
		l := k.Open(t, k.Start(t).Client(t), locktest.Options{
			Lease: 3 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		mine := locktest.Lock(t, l, t.Context(), "k")
		waiter := locktest.GoLock(l, t.Context(), "k") // without the bound context
		held := regexp.MustCompile(`level=DEBUG msg="holdfast: key held for longer than a lease" key="\\"k\\"" held=\S+ waiting=1`)
		locktest.Await(t, func() bool { return held.MatchString(log.String()) })
		for range 2 { // logged once, and not at each renewal
			before := mine.Deadline()
			locktest.Await(t, func() bool { return mine.Deadline().After(before) })
		}
		require.Len(t, held.FindAllString(log.String(), -1), 1)
		require.NoError(t, mine.Unlock(t.Context()))
		require.NoError(t, locktest.Got(t, waiter).Unlock(t.Context()))
		require.Contains(t, log.String(), `level=DEBUG msg="holdfast: waited for longer than a lease"`)
	})
}

// A list that Redis refuses says why, and one key that it refuses does not hide the others.
func TestErrors_OfAListThatIsRefused(t *testing.T) {
	t.Parallel()
	list := func(s *redistest.Server, change ...func(*rueidis.ClientOption)) (keys []string, failed []error) {
		locker := kind.Open(t, s.Client(t, change...), locktest.Options{})
		for status, err := range locker.Locks(t.Context(), "") {
			require.NotEqual(t, err == nil, status.Owner == "")
			if err == nil {
				keys = append(keys, status.Key)
			} else {
				failed = append(failed, err)
			}
		}
		return keys, failed
	}
	renamed := redistest.Start(t, "--rename-command", "SCAN", "")
	keys, failed := list(renamed)
	require.Empty(t, keys)
	require.Len(t, failed, 1)
	locktest.RequireSentinel(t, failed[0], holdfast.ErrOldServer)

	s := redistest.Start(t)
	kind.LeastRights(t, locktest.Topology{s}, "+scan")
	for _, key := range []string{"a", "b", "c"} {
		s.Do(t, "HSET", key, locktest.Java, "1")
	}
	keys, failed = list(s, locktest.AsLeast)
	require.Empty(t, keys)
	require.Len(t, failed, 1)
	require.Regexp(t, `^holdfast: list "\*": NOPERM .*'scan'`, failed[0].Error())
	locktest.RequireSentinel(t, failed[0], nil)

	s.Do(t, "ACL", "SETUSER", locktest.LeastUser, "+scan", "resetkeys", "~a", "~c")
	keys, failed = list(s, locktest.AsLeast)
	require.ElementsMatch(t, []string{"a", "c"}, keys)
	require.Len(t, failed, 1)
	require.Regexp(t, `^holdfast: inspect "b": NOPERM `, failed[0].Error())
	locktest.RequireSentinel(t, failed[0], nil)
}

func TestF31_EvictionIsWarnedAbout(t *testing.T) {
	for policy, warned := range map[string]bool{"volatile-ttl": true, "allkeys-lru": true, "noeviction": false} {
		var log bytes.Buffer
		client := redistest.Start(t, "--maxmemory-policy", policy).Client(t)
		l := redistest.Must(rlock.New(client, holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
		require.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil }))
		require.NoError(t, l.Close()) // waits for the check of the policy
		require.Equal(t, warned, strings.Contains(log.String(), "policy="+policy), log.String())
		require.Equal(t, warned, log.Len() > 0, log.String())
	}
}

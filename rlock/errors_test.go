package rlock_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// The error of a Redis that can be reached and does not answer names it.
func TestErrors_NameTheServer(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	l := userLocker(t, redistest.Start(t).Client(t, func(o *rueidis.ClientOption) {
		o.InitAddress = []string{proxy.Addr()}
	}), rlock.WithLease(300*time.Millisecond))
	proxy.OnReply(func([]string) redistest.Verdict { return redistest.Hold })
	_, err := l.TryLock(t.Context(), "k")
	require.EqualError(t, err, fmt.Sprintf(`holdfast: lock "k": outcome unknown: %s: no answer in time`, proxy.Addr()))
	proxy.OnReply(nil)
	proxy.Release()

	lease := locktest.Lock(t, l, t.Context(), "k")
	proxy.HoldRequests(true)
	require.EqualError(t, lease.Unlock(t.Context()), fmt.Sprintf(`holdfast: unlock "k": outcome unknown: %s: no answer in time`, proxy.Addr()))
	proxy.HoldRequests(false)
}

// The log tells of holds and waits longer than a lease, which explain why a program stands
// still.
func TestErrors_LongHoldsAndWaitsAreLogged(t *testing.T) {
	var log redistest.Log
	l := userLocker(t, redistest.Start(t).Client(t), rlock.WithLease(500*time.Millisecond),
		rlock.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
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
}

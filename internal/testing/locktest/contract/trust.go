package contract

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// G2: a lease ends in time by itself. G3: its loss is reported.
var trustCases = []testCase{
	{"G2_DeadlineCountsFromTheStart", servers, locktest.Options{Lease: 30 * time.Second}, g2Anchor},
	{"G2_ServerHangs", servers | ofOneHolder, locktest.Options{Lease: 30 * time.Second}, func(c *harness) { g2(c, c.Server.Pause, c.Server.Resume) }},
	{"G2_G3_RequestsArriveLate", servers | ofOneHolder, locktest.Options{Lease: 30 * time.Second}, func(c *harness) {
		g2(c, func() { c.Proxy.HoldRequests(true) }, func() { c.Proxy.HoldRequests(false) })
	}},
	{"G2_G3_RepliesArriveLate", servers, locktest.Options{Lease: 30 * time.Second}, func(c *harness) {
		g2(c, func() { c.Proxy.HoldReplies(true) }, func() { c.Proxy.HoldReplies(false) })
	}},
	{"G2_ServerIsGone", servers, locktest.Options{Lease: 20 * time.Second, MaxLease: 20 * time.Second, MaxOutage: &longOutage}, func(c *harness) { g2(c, c.Server.Kill, c.Server.Restart) }},
	{"G2_AnAcquireAnsweredTooLateIsNotTrusted", servers, defaults, g2TooLate},
	{"G3_LossIsToldAtOnce", servers, locktest.Options{Lease: 30 * time.Second}, g3AtOnce},
}

// The trusted deadline is at most the start of the last call that succeeded,
// plus lease less margin. Replies that travel long bring nothing.
func g2Anchor(c *harness) {
	const trusted = 30*time.Second - 302*time.Millisecond
	var mu sync.Mutex
	var sent time.Time // when the last call went by, a moment after its start
	c.Proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if locktest.Is("acquire", "renew")(cmd) {
			mu.Lock()
			defer mu.Unlock()
			sent = time.Now()
		}
		return redistest.Pass
	})
	atMost := func(l *holdfast.Lease) {
		mu.Lock()
		defer mu.Unlock()
		require.False(c.T, l.Deadline().After(sent.Add(trusted)))
	}
	c.Proxy.SetDelay(0, 100*time.Millisecond)
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	atMost(l)
	for range 2 {
		locktest.Renewed(c.T, l)
		atMost(l)
	}
	c.Proxy.SetDelay(0, 0)
	c.unlock(l)
}

// g2 holds a lease while Redis gives no answer, until the lease is over; then
// Redis is back.
func g2(c *harness, away, back func()) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	inner := locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k")
	away()
	for d := (time.Time{}); d != l.Deadline(); {
		d = l.Deadline()
		time.Sleep(time.Until(d))
	}
	deadline := l.Deadline()
	// It is over at that moment, whether or not anybody was woken in time.
	require.ErrorIs(c.T, l.Err(), holdfast.ErrLost)
	require.ErrorIs(c.T, locktest.ErrOf(c.Locker.TryLock(context.WithoutCancel(l.Bind(c.ctx)), "k")), holdfast.ErrLost)
	c.ended(l, holdfast.ErrLost)
	c.ended(inner, holdfast.ErrLost)

	back()
	next := locktest.Lock(c.T, c.Other, c.ctx, "k")
	c.ended(l, holdfast.ErrLost)
	require.Equal(c.T, deadline, l.Deadline())
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	require.ErrorIs(c.T, inner.Unlock(c.ctx), holdfast.ErrLost)
	locktest.Await(c.T, func() bool { return c.Owner("k") == next.Owner() }, "the lost hold has gone") // of a reader, later than next begins
	c.unlock(next)
	c.Tidy("k")
}

// Redis has granted it for 300 ms, and most of them have passed.
func g2TooLate(c *harness) {
	held, letGo := c.hold(c.Proxy.OnReply, "acquire")
	done := locktest.Go(func() error {
		return locktest.ErrOf(c.Locker.TryLock(c.ctx, "k", holdfast.FixedLease(300*time.Millisecond)))
	})
	locktest.Within(c.T, held)
	time.Sleep(300 * time.Millisecond) // the lease is over, as far as this process may know
	letGo()
	require.ErrorIs(c.T, <-done, holdfast.ErrUnknown)
	c.Tidy("k")
	locktest.Await(c.T, func() bool { return len(c.Keys()) == 1 }, "its owner has no tombstone")
}

// Whatever became of the key, the loss of each lease is reported long before its deadline.
func g3AtOnce(c *harness) {
	deleted, taken, replaced := locktest.Lock(c.T, c.Locker, c.ctx, "deleted"), locktest.Lock(c.T, c.Locker, c.ctx, "taken"), locktest.Lock(c.T, c.Locker, c.ctx, "replaced")
	inDo := make(chan error, 1)
	running := make(chan struct{})
	go func() {
		inDo <- c.Locker.Do(c.ctx, "in do", func(ctx context.Context) error {
			close(running)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	<-running
	bound := deleted.Bind(c.ctx)
	c.Server.Do(c.T, "DEL", c.Name("deleted"))
	c.Server.Do(c.T, "DEL", c.Name("in do"))
	c.Kind.Give(c.T, c.Server, c.Name("taken"), locktest.Java, "1")
	c.Server.Do(c.T, "SET", c.Name("replaced"), "not a lock")
	for _, l := range []*holdfast.Lease{deleted, taken, replaced} {
		c.ended(l, holdfast.ErrLost)
		require.True(c.T, time.Now().Before(l.Deadline()))
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	}
	require.ErrorIs(c.T, context.Cause(bound), holdfast.ErrLost)
	require.ErrorIs(c.T, <-inDo, holdfast.ErrLost)
	require.Equal(c.T, c.Kind.Java(), c.Owner("taken"))
}

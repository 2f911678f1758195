package locktest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// G2: a lease ends in time by itself. G3: its loss is told.
var trustCases = []contractCase{
	{"G2_DeadlineCountsFromTheStart", Options{Lease: 3 * time.Second}, g2Anchor},
	{"G2_ServerHangs", Options{Lease: time.Second}, g2ServerHangs},
	{"G2_RequestsArriveLate", Options{Lease: time.Second}, g2RequestsLate},
	{"G2_RepliesArriveLate", Options{Lease: time.Second}, g2RepliesLate},
	{"G2_ServerIsGone", Options{Lease: time.Second, MaxLease: time.Second}, g2ServerGone},
	{"G2_AnAcquireAnsweredTooLateIsNotTrusted", defaults, g2TooLate},
	{"G3_LossIsToldAtOnce", Options{Lease: 6 * time.Second}, g3AtOnce},
	{"G3_SilenceIsToldAtTheDeadline", Options{Lease: time.Second}, g3Silence},
}

// The trusted deadline is at most the start of the last call that succeeded,
// plus lease less margin. Replies that travel long bring nothing.
func g2Anchor(c *contractRig) {
	const trusted = 3*time.Second - 32*time.Millisecond
	var mu sync.Mutex
	var sent time.Time // when the last call went by, a moment after its start
	c.proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if is("acquire", "renew")(cmd) {
			mu.Lock()
			defer mu.Unlock()
			sent = time.Now()
		}
		return redistest.Pass
	})
	atMost := func(l *holdfast.Lease) {
		mu.Lock()
		defer mu.Unlock()
		require.False(c.t, l.Deadline().After(sent.Add(trusted)))
	}
	c.proxy.SetDelay(0, 100*time.Millisecond)
	l := lock(c.t, c.locker, c.ctx, "k")
	atMost(l)
	for range 2 {
		before := l.Deadline()
		await(c.t, func() bool { return l.Deadline().After(before) })
		atMost(l)
	}
	c.proxy.SetDelay(0, 0)
	c.unlock(l)
}

// g2 holds a lease while Redis gives no answer, until the lease is over; then
// Redis is back.
func g2(c *contractRig, away func(bool)) {
	l := lock(c.t, c.locker, c.ctx, "k")
	inner := lock(c.t, c.locker, l.Bind(c.ctx), "k")
	away(true)
	for d := (time.Time{}); d != l.Deadline(); {
		d = l.Deadline()
		time.Sleep(time.Until(d))
	}
	deadline := l.Deadline()
	// It is over at that moment, whether or not anybody was woken in time.
	require.ErrorIs(c.t, l.Err(), holdfast.ErrLost)
	_, err := c.locker.TryLock(context.WithoutCancel(l.Bind(c.ctx)), "k")
	require.ErrorIs(c.t, err, holdfast.ErrLost)
	c.ended(l, holdfast.ErrLost)
	c.ended(inner, holdfast.ErrLost)

	away(false)
	next := lock(c.t, c.other, c.ctx, "k")
	c.ended(l, holdfast.ErrLost)
	require.Equal(c.t, deadline, l.Deadline())
	require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
	require.ErrorIs(c.t, inner.Unlock(c.ctx), holdfast.ErrLost)
	require.Equal(c.t, next.Owner(), c.owner("k"))
	c.unlock(next)
	c.tidy("k")
}

func g2RequestsLate(c *contractRig) { g2(c, c.proxy.HoldRequests) }
func g2RepliesLate(c *contractRig)  { g2(c, c.proxy.HoldReplies) }

func g2ServerHangs(c *contractRig) {
	g2(c, func(away bool) {
		if away {
			c.server.Pause()
		} else {
			c.server.Resume()
		}
	})
}

func g2ServerGone(c *contractRig) {
	g2(c, func(away bool) {
		if away {
			c.server.Kill()
		} else {
			c.server.Restart()
		}
	})
}

// Redis has granted it for 300 ms, and most of them have passed.
func g2TooLate(c *contractRig) {
	hook, held := holding("acquire")
	c.proxy.OnReply(hook)
	done := make(chan error, 1)
	go func() {
		_, err := c.locker.TryLock(c.ctx, "k", holdfast.FixedLease(300*time.Millisecond))
		done <- err
	}()
	within(c.t, held)
	time.Sleep(300 * time.Millisecond)
	c.proxy.OnReply(nil)
	c.proxy.Release()
	require.ErrorIs(c.t, <-done, holdfast.ErrUnknown)
	c.tidy("k")
	await(c.t, func() bool { return len(c.keys()) == 1 }, "its owner has no tombstone")
}

// Whatever became of the key, each lease is told long before its deadline.
func g3AtOnce(c *contractRig) {
	deleted, taken, replaced := lock(c.t, c.locker, c.ctx, "deleted"), lock(c.t, c.locker, c.ctx, "taken"), lock(c.t, c.locker, c.ctx, "replaced")
	inDo := make(chan error, 1)
	running := make(chan struct{})
	go func() {
		inDo <- c.locker.Do(c.ctx, "in do", func(ctx context.Context) error {
			close(running)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	<-running
	bound := deleted.Bind(c.ctx)
	c.server.Do(c.t, "DEL", "deleted", "in do")
	give(c.t, c.server, "taken", java, "1")
	c.server.Do(c.t, "SET", "replaced", "not a lock")
	for _, l := range []*holdfast.Lease{deleted, taken, replaced} {
		c.ended(l, holdfast.ErrLost)
		require.True(c.t, time.Now().Before(l.Deadline()))
		require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
	}
	require.ErrorIs(c.t, context.Cause(bound), holdfast.ErrLost)
	require.ErrorIs(c.t, <-inDo, holdfast.ErrLost)
	require.Equal(c.t, java, c.owner("taken"))
}

func g3Silence(c *contractRig) {
	err := c.locker.Do(c.ctx, "k", func(ctx context.Context) error {
		c.proxy.HoldRequests(true)
		<-ctx.Done()
		require.ErrorIs(c.t, context.Cause(ctx), holdfast.ErrLost)
		return nil
	})
	require.ErrorIs(c.t, err, holdfast.ErrLost)
	c.proxy.HoldRequests(false)
	c.tidy("k")
}

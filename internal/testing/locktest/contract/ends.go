package contract

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

var endCases = []testCase{
	{"End_IsToldEverywhere", anywhere, defaults, endTold},
	{"Bind_KeepsWhatTheParentSays", anywhere, defaults, bindParents},
	{"End_DeadlineMovesWithRenewals", anywhere, locktest.Options{Lease: 30 * time.Second}, endDeadline},
}

// errMine is an error of the caller's own.
var errMine = errors.New("my own reason")

// Whether they are asked before the end or after, all listeners learn of it.
func endTold(c *harness) {
	for _, end := range []struct {
		why error
		by  func(l *holdfast.Lease)
	}{
		{holdfast.ErrReleased, c.unlock},
		{holdfast.ErrLost, func(*holdfast.Lease) {
			c.force(c.Locker, "k")
		}},
		{holdfast.ErrClosed, func(*holdfast.Lease) { require.NoError(c.T, c.Locker.Close()) }},
	} {
		l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
		c.lives(l)
		done, bounds := l.Done(), []context.Context{l.Bind(c.ctx), l.Bind(context.Background())}
		require.Equal(c.T, done, l.Done())
		for _, b := range bounds {
			require.NoError(c.T, b.Err())
		}
		end.by(l)
		<-done
		for _, b := range bounds {
			<-b.Done()
			require.ErrorIs(c.T, context.Cause(b), end.why)
		}
		c.ended(l, end.why)
		require.EqualError(c.T, context.Cause(l.Bind(c.ctx)), l.Err().Error())
		require.Equal(c.T, done, l.Done())
	}
}

func endDeadline(c *harness) {
	const lease, margin = 30 * time.Second, 302 * time.Millisecond
	before := time.Now()
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	first := l.Deadline()
	require.False(c.T, first.Before(before.Add(lease-margin)), "counts from the start of the attempt")
	if strings.Contains(before.String(), " m=") { // in a bubble no time has one
		require.Contains(c.T, first.String(), " m=", "a monotonic clock reading")
	}
	locktest.Await(c.T, func() bool { return l.Deadline().After(first) })
	c.lives(l)
	c.unlock(l)
	last := l.Deadline()
	require.Equal(c.T, last, l.Deadline())

	fixed := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(time.Minute))
	require.LessOrEqual(c.T, time.Until(fixed.Deadline()), time.Minute)
	c.unlock(fixed)
}

type valueKey struct{}

// Contexts that are bound to one lease share what ends them, and nothing else.
func bindParents(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	with := func(parent context.Context, v int) context.Context {
		return context.WithValue(parent, valueKey{}, v)
	}
	errTold := errMine
	told, tell := context.WithCancelCause(context.Background())
	late, stop := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer stop()
	soon, stop := context.WithTimeout(context.Background(), time.Hour)
	defer stop()
	parents := []context.Context{
		context.Background(), with(context.Background(), 1), with(context.Background(), 2),
		told, with(told, 3), with(with(told, 4), 5), soon, with(soon, 6),
	}
	var all, children []context.Context
	for _, parent := range parents {
		bound := l.Bind(parent)
		require.NoError(c.T, bound.Err())
		require.Equal(c.T, parent.Value(valueKey{}), bound.Value(valueKey{}))
		want, has := parent.Deadline()
		got, bounded := bound.Deadline()
		require.Equal(c.T, []any{want, has}, []any{got, bounded})
		child, stop := context.WithCancel(bound)
		defer stop()
		all, children = append(all, bound), append(children, child)
		c.unlock(locktest.Lock(c.T, c.Locker, child, "k"))
	}
	require.Equal(c.T, context.DeadlineExceeded, l.Bind(late).Err())

	tell(errTold)
	for i, bound := range all {
		if i < 3 || i > 5 {
			require.NoError(c.T, bound.Err())
			require.NoError(c.T, children[i].Err())
			continue
		}
		for _, ctx := range []context.Context{bound, children[i], l.Bind(parents[i])} {
			locktest.Within(c.T, ctx.Done())
			require.Equal(c.T, context.Canceled, ctx.Err())
			require.Equal(c.T, errTold, context.Cause(ctx))
		}
	}
	c.unlock(l)
	for i, bound := range all {
		if i >= 3 && i <= 5 {
			continue
		}
		for _, ctx := range []context.Context{bound, children[i], l.Bind(parents[i])} {
			locktest.Within(c.T, ctx.Done())
			require.Equal(c.T, context.Canceled, ctx.Err())
			require.ErrorIs(c.T, context.Cause(ctx), holdfast.ErrReleased)
		}
	}
}

var termsCases = []testCase{
	{"Terms_FixedLeaseIsNeverRenewedAndGoneAfterIt", ofOneHolder, locktest.Options{Lease: 15 * time.Second}, termsFixed},
	{"Terms_MaxHoldIsRenewedUntilThen", anywhere, locktest.Options{Lease: 30 * time.Second}, termsMaxHoldRenewed},
	{"Terms_MaxHoldOfALocker", ofOneHolder, defaults, termsMaxHoldLocker},
	{"Terms_MaxHoldOfALockerIsRefused", anywhere, locktest.Options{MaxHold: time.Minute}, termsMaxHoldRefused},
	{"Terms_OfAWaiter", ofOneHolder, defaults, termsWaiter},
}

func termsFixed(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(8*time.Second)) // so long that it would be renewed
	require.LessOrEqual(c.T, c.Remaining("k"), 8*time.Second)
	deadline := l.Deadline()
	c.ended(l, holdfast.ErrLost)
	require.ErrorIs(c.T, l.Err(), watchdog.ErrFixedLease)
	require.ErrorIs(c.T, l.Err(), watchdog.ErrDeadline, "as before it had a reason of its own")
	require.False(c.T, time.Now().Before(deadline))
	require.Equal(c.T, deadline, l.Deadline())
	require.NotContains(c.T, c.commands(), "renew")
	next := locktest.Lock(c.T, c.Other, c.ctx, "k") // no message comes
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	c.held(c.Locker, "k")
	c.unlock(next)
}

func termsMaxHoldRenewed(c *harness) {
	before := time.Now()
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.MaxHold(40*time.Second))
	c.ended(l, holdfast.ErrLost)
	require.GreaterOrEqual(c.T, time.Since(before), 40*time.Second)
	if c.Server != nil {
		require.Contains(c.T, c.commands(), "renew")
	}
	c.Tidy("k")
}

// Only the release frees the key in time. What asked for terms of its own keeps them.
func termsMaxHoldLocker(c *harness) {
	var logs redistest.Log
	c.Locker = c.Kind.Open(c.T, c.Client, locktest.Options{Lease: locktest.Long, MaxHold: 8 * time.Second, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	before := time.Now()
	fixed := locktest.Lock(c.T, c.Locker, c.ctx, "fixed", holdfast.FixedLease(time.Minute))
	shorter := locktest.Lock(c.T, c.Locker, c.ctx, "shorter", holdfast.MaxHold(200*time.Millisecond))
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	require.LessOrEqual(c.T, time.Until(l.Deadline()), 8*time.Second)
	their := locktest.Lock(c.T, c.Other, c.ctx, "shorter")
	c.ended(shorter, holdfast.ErrLost)
	require.ErrorIs(c.T, shorter.Unlock(c.ctx), holdfast.ErrLost)
	c.unlock(their)
	waiter := c.inQueue(c.Locker, "k")
	c.ended(l, holdfast.ErrLost)
	require.GreaterOrEqual(c.T, time.Since(before), 8*time.Second)
	require.ErrorContains(c.T, l.Unlock(c.ctx), "the longest hold is over")
	next := locktest.Got(c.T, waiter)
	c.ended(next, holdfast.ErrLost)
	require.GreaterOrEqual(c.T, time.Since(before), 16*time.Second)
	c.lives(fixed)
	c.unlock(fixed)
	if c.Server != nil { // else there is no log
		warnings := func() int { return strings.Count(logs.String(), `reason="the longest hold is over"`) }
		locktest.Await(c.T, func() bool { return warnings() >= 3 }) // a lease ends before the log says so
		require.Equal(c.T, 3, warnings(), logs.String())
	}
	for _, key := range []string{"k", "shorter", "fixed"} {
		c.Tidy(key)
	}
}

func termsMaxHoldRefused(c *harness) {
	_, err := c.Locker.TryLock(c.ctx, "k", holdfast.MaxHold(time.Minute+1))
	locktest.RequireSentinel(c.T, err, holdfast.ErrInvalidArgument, "MaxHold: 1m0.000000001s is longer than WithMaxHold, 1m0s")
	c.quiet()
	for _, call := range []holdfast.LockOption{holdfast.FixedLease(time.Hour), holdfast.MaxHold(time.Minute)} {
		l := locktest.Lock(c.T, c.Locker, c.ctx, "k", call)
		c.unlock(locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k"))
		c.unlock(l) // before its end
		c.free("k")
	}
}

// A waiter gets what it asked for, be it more or less than it would get without.
func termsWaiter(c *harness) {
	for _, lease := range []time.Duration{3 * time.Second, time.Hour} {
		their := locktest.Lock(c.T, c.Other, c.ctx, "k")
		w := c.inQueue(c.Locker, "k", holdfast.FixedLease(lease))
		l := locktest.Next(c.T, their, w)
		left := time.Until(l.Deadline())
		require.LessOrEqual(c.T, left, lease)
		require.LessOrEqual(c.T, c.Remaining("k"), lease)
		if lease == time.Hour {
			require.Greater(c.T, left, lease/2)
			c.unlock(l)
			continue
		}
		next := locktest.Lock(c.T, c.Other, c.ctx, "k") // when it has run out
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
		c.unlock(next)
	}
}

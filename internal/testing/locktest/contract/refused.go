package contract

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

var refusedCases = []testCase{
	{"Refused_Keys", anywhere, defaults, refusedKeys},
	{"Refused_Terms", anywhere, defaults, refusedTerms},
	{"Refused_Options", anywhere, defaults, refusedOptions},
	{"Refused_NoClient", servers, defaults, refusedClient},
	{"F8_AnyBytesAreAKey", ofOneHolder, locktest.Options{Fencing: true}, acceptedKeys},
	{"Errors_NameTheKey", ofOneHolder | ofLocks, defaults, errorsNameTheKey},
}

// A bad key is refused before anything is sent. With a prefix, a key is no more than the end of a
// name.
func refusedKeys(c *harness) {
	keys := map[string]string{
		"": "key is empty", strings.Repeat("k", 1025): "at most 1024",
		"{k}": "in braces", "{a}k}": "in braces", "holdfast_node": "node of a quorum",
		"redisson_lock_token:{k}": "another lock", "redisson_lock_queue:{k}": "another lock", "redisson_lock_timeout:{k}": "another lock",
		"holdfast_heartbeat:{k}": "another lock", "holdfast_gone:{k}:owner": "another lock", "redisson_unlock_latch:{k}:0": "another lock",
		"{k}:owner:rwlock_timeout:1": "read/write lock",
	}
	maps.DeleteFunc(keys, func(key, _ string) bool { return key != "" && check.Key(c.Name(key)) == nil })
	require.Contains(c.T, keys, "{k}:owner:rwlock_timeout:1")
	for key, why := range keys {
		for name, call := range c.everyCall(c.ctx, key) {
			err := call()
			locktest.RequireSentinel(c.T, err, holdfast.ErrInvalidArgument, why)
			require.ErrorContains(c.T, err, `"`+key[:min(len(key), 64)]+`"`, name)
			require.Less(c.T, len(err.Error()), 250, name)
		}
	}
	c.quiet()
}

func refusedTerms(c *harness) {
	for _, r := range []struct {
		opts  []holdfast.LockOption
		names []string
	}{
		{[]holdfast.LockOption{nil}, []string{"option is nil"}},
		{[]holdfast.LockOption{holdfast.FixedLease(0)}, []string{"FixedLease: 0s"}},
		{[]holdfast.LockOption{holdfast.FixedLease(99 * time.Millisecond)}, []string{"FixedLease", "100ms"}},
		{[]holdfast.LockOption{holdfast.FixedLease(-time.Second)}, []string{"FixedLease", "-1s"}},
		{[]holdfast.LockOption{holdfast.FixedLease(time.Second + time.Microsecond)}, []string{"FixedLease", "whole number of milliseconds"}},
		{[]holdfast.LockOption{holdfast.FixedLease(1<<63 - 1)}, []string{"FixedLease", "longer"}},
		{[]holdfast.LockOption{holdfast.MaxHold(0)}, []string{"MaxHold: 0s"}},
		{[]holdfast.LockOption{holdfast.MaxHold(-1)}, []string{"MaxHold", "-1ns"}},
		{[]holdfast.LockOption{holdfast.FixedLease(time.Second), holdfast.MaxHold(time.Second)}, []string{"FixedLease", "MaxHold", "contradict"}},
	} {
		for name, call := range c.calls(c.ctx, "k", r.opts...) {
			err := call()
			locktest.RequireSentinel(c.T, err, holdfast.ErrInvalidArgument)
			for _, part := range r.names {
				require.ErrorContains(c.T, err, part, name)
			}
		}
	}
	for _, r := range []struct {
		err   error
		names string
	}{
		{c.Locker.Do(c.ctx, "k", nil), "Do: function is nil"},
		{locktest.ErrOf(c.Locker.TryLockFor(c.ctx, "k", -1)), "TryLockFor: wait of -1ns is negative"},
		{locktest.ErrOf(c.Locker.Lock(c.ctx, "k", holdfast.WaitAtMost(-1))), "WaitAtMost: -1ns is negative"},
		{locktest.ErrOf(c.Locker.TryLock(c.ctx, "k", holdfast.WaitAtMost(0))), "WaitAtMost is for Do and Lock"},
		{locktest.ErrOf(c.Locker.TryLockFor(c.ctx, "k", 0, holdfast.WaitAtMost(0))), "WaitAtMost is for Do and Lock"},
	} {
		require.ErrorContains(c.T, r.err, r.names)
		locktest.RequireSentinel(c.T, r.err, holdfast.ErrInvalidArgument)
	}
	c.quiet()
}

func refusedOptions(c *harness) {
	negative, tooLong, second := -time.Nanosecond, 31*time.Second, time.Second
	for _, r := range []struct {
		options locktest.Options
		names   []string
	}{
		{locktest.Options{Lease: 99 * time.Millisecond}, []string{"WithLease", "100ms"}},
		{locktest.Options{Lease: -time.Second}, []string{"WithLease", "-1s"}},
		{locktest.Options{Lease: time.Second + time.Nanosecond}, []string{"WithLease", "whole number of milliseconds"}},
		{locktest.Options{Lease: 1<<63 - 1}, []string{"WithLease", "longer"}},
		{locktest.Options{Handover: &negative}, []string{"WithLocalHandover", "negative"}},
		{locktest.Options{Handover: &tooLong}, []string{"WithLocalHandover", "31s", "30s"}},
		{locktest.Options{MaxHold: -time.Second}, []string{"WithMaxHold", "-1s"}},
		{locktest.Options{MaxHold: 99 * time.Millisecond}, []string{"WithMaxHold", "99ms", "100ms"}},
		{locktest.Options{MaxHold: 1<<63 - 1}, []string{"WithMaxHold", "longer than 100 years"}},
		{locktest.Options{MaxHold: time.Second, Handover: &second}, []string{"WithMaxHold", "WithLocalHandover", "1s"}},
		{locktest.Options{MaxWaiters: -1}, []string{"WithMaxWaiters", "-1"}},
		{locktest.Options{MaxOutage: &negative}, []string{"WithMaxOutage", "negative"}},
	} {
		if c.Server == nil && r.options.Handover != nil {
			continue // it hands nothing over
		}
		l, err := c.Kind.New(c.Client, r.options)
		require.Nil(c.T, l)
		locktest.RequireSentinel(c.T, err, holdfast.ErrInvalidArgument)
		for _, part := range r.names {
			require.ErrorContains(c.T, err, part)
		}
	}
	c.quiet()
}

func refusedClient(c *harness) {
	l, err := c.Kind.New(nil, locktest.Options{})
	require.Nil(c.T, l)
	locktest.RequireSentinel(c.T, err, holdfast.ErrInvalidArgument, "is nil")
}

func acceptedKeys(c *harness) {
	keys := []string{
		strings.Repeat("k", 1024-len(c.Kind.Prefix)), strings.Repeat("{", 1024-len(c.Kind.Prefix)), " ", "a b", "{", "}", "{}", "{a}b", "a{b}c",
		"{b", "b}", "}{", "{{a}}", "a{{b}}", "*", "?[a-z]", "%s%d", `\`, `"`, `'"\`, ":", "a:b:0", "a\r\nb", "\x00", "a\x00b", "\xff\xfe", "\x00\xff\r\n",
		"käse:1", "ключ", "*1\r\n$8\r\nFLUSHALL\r\n",
	}
	if c.Kind.Virtual { // elsewhere the client may have no lock of such a name
		keys = append(keys, "redisson_lock__channel:{k}")
	}
	keys = slices.DeleteFunc(keys, func(key string) bool {
		if c.Kind.Accepts(key) {
			return false
		}
		for _, call := range c.everyCall(c.ctx, key) {
			locktest.RequireSentinel(c.T, call(), holdfast.ErrInvalidArgument, "hash tag")
		}
		return true
	})
	for _, key := range keys {
		l := locktest.Lock(c.T, c.Locker, c.ctx, key)
		inner := locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), key)
		require.Equal(c.T, []any{l.Owner(), 2}, []any{c.Owner(key), c.Entries(key)}, "%q", key)
		c.held(c.Other, key)
		waiter := locktest.GoLock(c.Other, c.ctx, key)
		c.AwaitWaiters(key, 1)
		c.unlock(inner)
		next := locktest.Next(c.T, l, waiter)
		require.True(c.T, c.Kind.Permits || next.Fence() > l.Fence(), "%q", key)
		c.unlock(next)
	}
	for _, key := range keys {
		c.Tidy(key)
	}
}

// Errors name the key, and say if this locker itself has it: a caller that has forgotten a
// bound context deadlocks.
func errorsNameTheKey(c *harness) {
	mine := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	_, err := c.Other.TryLock(c.ctx, "k")
	require.Regexp(c.T, `^holdfast: lock "k": not acquired: (held by (another|"[^"]+/\d+")|\d of \d nodes said yes.*)$`, err.Error())
	here := regexp.MustCompile(`^holdfast: lock "k": not acquired: held by this locker for [0-9.]+m?s$`)
	for name, call := range map[string]func() (*holdfast.Lease, error){
		"TryLock":    func() (*holdfast.Lease, error) { return c.Locker.TryLock(c.ctx, "k") },
		"TryLockFor": func() (*holdfast.Lease, error) { return c.Locker.TryLockFor(c.ctx, "k", c.Kind.Limit()) },
		"WaitAtMost": func() (*holdfast.Lease, error) {
			return c.Locker.Lock(c.ctx, "k", holdfast.WaitAtMost(c.Kind.Limit()))
		},
	} {
		_, err := call()
		require.ErrorIs(c.T, err, holdfast.ErrNotAcquired, name)
		require.Regexp(c.T, here, err.Error(), name)
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	waiter := c.queueWith(ctx, c.Locker, "k")
	cancel(errors.New("mine"))
	require.Regexp(c.T, `^holdfast: lock "k": not acquired: held by this locker for \S+: context canceled: mine$`, (<-waiter).Err.Error())

	bound := mine.Bind(c.ctx)
	c.unlock(mine)
	require.EqualError(c.T, mine.Err(), `holdfast: lease of "k": lease already released`)
	require.EqualError(c.T, mine.Unlock(c.ctx), `holdfast: unlock "k": lease already released`)
	require.ErrorContains(c.T, locktest.ErrOf(c.Locker.Lock(bound, "k")), `holdfast: lock "k": `)

	lost := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	bound = lost.Bind(c.ctx)
	c.force(c.Locker, "k")
	require.EqualError(c.T, context.Cause(bound), `holdfast: lease of "k": lease lost: force-unlocked`)
	require.EqualError(c.T, lost.Unlock(c.ctx), `holdfast: unlock "k": lease lost: force-unlocked`)

	require.EqualError(c.T, c.Locker.Do(c.ctx, "k", nil), `holdfast: lock "k": Do: function is nil`)
}

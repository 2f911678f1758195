package contract

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/scripts"
)

var refusedCases = []testCase{
	{"Refused_Keys", defaults, refusedKeys},
	{"Refused_Terms", defaults, refusedTerms},
	{"Refused_Options", defaults, refusedOptions},
	{"Refused_NoClient", defaults, refusedClient},
	{"Accepted_Keys", defaults, acceptedKeys},
}

// Before anything is sent. With a prefix, a key is no more than the end of a name.
func refusedKeys(c *harness) {
	keys := map[string]string{
		"": "key is empty", strings.Repeat("k", 1025): "at most 1024",
		"{k}": "in braces", "{a}k}": "in braces", "holdfast_node": "node of a quorum",
		"redisson_lock_token:{k}": "another lock", "redisson_lock_queue:{k}": "another lock", "redisson_lock_timeout:{k}": "another lock",
		"holdfast_heartbeat:{k}": "another lock", "holdfast_gone:{k}:owner": "another lock", "redisson_unlock_latch:{k}:0": "another lock",
		"{k}:owner:rwlock_timeout:1": "read/write lock",
	}
	maps.DeleteFunc(keys, func(key, _ string) bool { return key != "" && scripts.CheckKey(c.Name(key)) == nil })
	require.Contains(c.T, keys, "{k}:owner:rwlock_timeout:1")
	for key, why := range keys {
		for name, call := range map[string]func() error{
			"Lock":        func() error { _, err := c.Locker.Lock(c.ctx, key); return err },
			"TryLock":     func() error { _, err := c.Locker.TryLock(c.ctx, key); return err },
			"TryLockFor":  func() error { _, err := c.Locker.TryLockFor(c.ctx, key, time.Hour); return err },
			"Do":          func() error { return c.Locker.Do(c.ctx, key, unreachable(c.T)) },
			"Inspect":     func() error { _, err := c.Locker.Inspect(c.ctx, key); return err },
			"ForceUnlock": func() error { _, err := c.Locker.ForceUnlock(c.ctx, key); return err },
		} {
			err := call()
			require.ErrorContains(c.T, err, why, name)
			RequireSentinel(c.T, err, holdfast.ErrInvalidArgument)
			require.ErrorContains(c.T, err, `"`+key[:min(len(key), 64)]+`"`, name)
			require.Less(c.T, len(err.Error()), 250, name)
		}
	}
	c.quiet()
}

func refusedTerms(c *harness) {
	for _, r := range []struct {
		calls []holdfast.LockOption
		names []string
	}{
		{[]holdfast.LockOption{holdfast.FixedLease(99 * time.Millisecond)}, []string{"FixedLease", "100ms"}},
		{[]holdfast.LockOption{holdfast.FixedLease(-time.Second)}, []string{"FixedLease", "-1s"}},
		{[]holdfast.LockOption{holdfast.FixedLease(time.Second + time.Microsecond)}, []string{"FixedLease", "whole number of milliseconds"}},
		{[]holdfast.LockOption{holdfast.FixedLease(1<<63 - 1)}, []string{"FixedLease", "longer"}},
		{[]holdfast.LockOption{holdfast.MaxHold(-1)}, []string{"MaxHold", "-1ns"}},
		{[]holdfast.LockOption{holdfast.FixedLease(time.Second), holdfast.MaxHold(time.Second)}, []string{"FixedLease", "MaxHold", "contradict"}},
	} {
		for name, call := range map[string]func() error{
			"Lock":       func() error { _, err := c.Locker.Lock(c.ctx, "k", r.calls...); return err },
			"TryLock":    func() error { _, err := c.Locker.TryLock(c.ctx, "k", r.calls...); return err },
			"TryLockFor": func() error { _, err := c.Locker.TryLockFor(c.ctx, "k", time.Hour, r.calls...); return err },
			"Do":         func() error { return c.Locker.Do(c.ctx, "k", unreachable(c.T), r.calls...) },
		} {
			err := call()
			RequireSentinel(c.T, err, holdfast.ErrInvalidArgument)
			for _, part := range r.names {
				require.ErrorContains(c.T, err, part, name)
			}
		}
	}
	c.quiet()
}

func refusedOptions(c *harness) {
	negative, tooLong, second := -time.Nanosecond, 31*time.Second, time.Second
	for _, r := range []struct {
		options Options
		names   []string
	}{
		{Options{Lease: 99 * time.Millisecond}, []string{"WithLease", "100ms"}},
		{Options{Lease: -time.Second}, []string{"WithLease", "-1s"}},
		{Options{Lease: time.Second + time.Nanosecond}, []string{"WithLease", "whole number of milliseconds"}},
		{Options{Lease: 1<<63 - 1}, []string{"WithLease", "longer"}},
		{Options{Handover: &negative}, []string{"WithLocalHandover", "negative"}},
		{Options{Handover: &tooLong}, []string{"WithLocalHandover", "31s", "30s"}},
		{Options{MaxHold: -time.Second}, []string{"WithMaxHold", "-1s"}},
		{Options{MaxHold: 99 * time.Millisecond}, []string{"WithMaxHold", "99ms", "100ms"}},
		{Options{MaxHold: 1<<63 - 1}, []string{"WithMaxHold", "longer than 100 years"}},
		{Options{MaxHold: time.Second, Handover: &second}, []string{"WithMaxHold", "WithLocalHandover", "1s"}},
		{Options{MaxWaiters: -1}, []string{"WithMaxWaiters", "-1"}},
		{Options{MaxOutage: &negative}, []string{"WithMaxOutage", "negative"}},
	} {
		if c.Server == nil && r.options.Handover != nil {
			continue // it hands nothing over
		}
		l, err := c.Kind.New(c.Client, r.options)
		require.Nil(c.T, l)
		RequireSentinel(c.T, err, holdfast.ErrInvalidArgument)
		for _, part := range r.names {
			require.ErrorContains(c.T, err, part)
		}
	}
	c.quiet()
}

func refusedClient(c *harness) {
	l, err := c.Kind.New(nil, Options{})
	require.Nil(c.T, l)
	require.ErrorContains(c.T, err, "is nil")
	RequireSentinel(c.T, err, holdfast.ErrInvalidArgument)
}

// Any bytes make a key.
func acceptedKeys(c *harness) {
	keys := []string{
		strings.Repeat("k", 1024-len(c.Kind.Prefix)), "a b", "{", "}", "{}", "{a}b", "a{b}c", "}{", "\x00\xff\r\n", "käse:1", "*", "?[a-z]", `"`, ":",
	}
	keys = slices.DeleteFunc(keys, func(key string) bool {
		if c.Kind.Accepts(key) {
			return false
		}
		_, err := c.Locker.TryLock(c.ctx, key)
		require.ErrorContains(c.T, err, "hash tag", key)
		RequireSentinel(c.T, err, holdfast.ErrInvalidArgument)
		return true
	})
	for _, key := range keys {
		l := Lock(c.T, c.Locker, c.ctx, key)
		waiter := GoLock(c.Other, c.ctx, key)
		c.AwaitWaiters(key, 1)
		c.unlock(l)
		c.unlock(Got(c.T, waiter))
	}
	for _, key := range keys {
		c.Tidy(key)
	}
}

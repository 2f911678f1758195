package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var closeCases = []contractCase{
	{"Close_ReleasesAndEndsAll", defaults, closeAll},
	{"Close_Unused", defaults, closeUnused},
	{"Close_DuringDo", defaults, closeDo},
	{"Close_WithACallUnderWay", Options{Lease: time.Second}, closeUnderWay},
	{"Close_IsBoundedWhileRedisHangs", Options{Lease: time.Second}, closeHanging},
	{"Close_IsBoundedDuringACleanUp", Options{Lease: 300 * time.Millisecond}, closeCleanUp},
	{"Close_WithRedisGone", defaults, closeGone},
	{"Close_ReleasesManyInFewCalls", defaults, closeMany},
	{"Close_RefusesAllUse", defaults, closeUse},
}

func closeAll(c *contractRig) {
	var leases []*holdfast.Lease
	for _, key := range []string{"a", "b", "nested"} {
		leases = append(leases, lock(c.t, c.locker, c.ctx, key))
	}
	leases = append(leases, lock(c.t, c.locker, leases[2].Bind(c.ctx), "nested"))
	leases = append(leases, lock(c.t, c.locker, c.ctx, "fixed", holdfast.FixedLease(time.Hour)))
	their := lock(c.t, c.other, c.ctx, "theirs")
	waits := []<-chan acquired{lockAside(c.locker, c.ctx, "theirs"), c.queue(c.locker, "a"), c.queue(c.locker, "a")}
	c.awaitWaiters("theirs", 1)
	next := lockAside(c.other, c.ctx, "b")
	c.awaitWaiters("b", 1)

	require.NoError(c.t, c.locker.Close())
	c.unlock(got(c.t, next)) // it was told
	for _, w := range waits {
		requireSentinel(c.t, (<-w).err, holdfast.ErrClosed)
	}
	for _, l := range leases {
		c.ended(l, holdfast.ErrClosed)
		c.free(l.Key())
		require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrClosed)
		requireSentinel(c.t, l.Unlock(c.ctx), holdfast.ErrReleased)
	}
	c.traceless("theirs")
	require.NoError(c.t, c.locker.Close())
	c.unlock(their)
	c.tidy("theirs")
}

func closeUnused(c *contractRig) {
	l, err := c.kind.New(c.client, Options{})
	require.NoError(c.t, err)
	require.NoError(c.t, l.Close())
	require.NoError(c.t, l.Close())
	c.quiet()
}

func closeDo(c *contractRig) {
	err := c.locker.Do(c.ctx, "k", func(ctx context.Context) error {
		require.NoError(c.t, c.locker.Close())
		<-ctx.Done()
		require.ErrorIs(c.t, context.Cause(ctx), holdfast.ErrClosed)
		return errMine
	})
	require.ErrorIs(c.t, err, errMine)
	require.ErrorIs(c.t, err, holdfast.ErrClosed)
	c.free("k")
}

// A lock that is granted while the locker closes belongs to nobody.
func closeUnderWay(c *contractRig) {
	hook, held := holding("acquire")
	c.proxy.OnReply(hook)
	done := lockAside(c.locker, c.ctx, "k")
	within(c.t, held)
	closed := make(chan error, 1)
	go func() { closed <- c.locker.Close() }()
	// It is closed for this key when it says so, and waits for the call.
	await(c.t, func() bool {
		_, err := c.locker.TryLock(c.ctx, "k")
		return errors.Is(err, holdfast.ErrClosed)
	})
	c.proxy.OnReply(nil)
	c.proxy.Release()
	require.NoError(c.t, <-closed)
	a := <-done
	require.Nil(c.t, a.lease)
	require.Error(c.t, a.err)
	c.tidy("k")
}

func closeHanging(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	waiter := c.queue(c.locker, "k")
	their := lock(c.t, c.other, c.ctx, "theirs")
	far := lockAside(c.locker, c.ctx, "theirs")
	c.awaitWaiters("theirs", 1)
	c.proxy.HoldRequests(true)
	defer c.proxy.HoldRequests(false)
	err := c.locker.Close()
	require.ErrorIs(c.t, err, holdfast.ErrUnknown)
	ownTime(c.t, err)
	require.Error(c.t, l.Err())
	require.ErrorIs(c.t, (<-waiter).err, holdfast.ErrClosed)
	require.ErrorIs(c.t, (<-far).err, holdfast.ErrClosed)
	require.NoError(c.t, c.locker.Close())
	_ = their.Unlock(c.ctx)
	await(c.t, func() bool { return !exists(c.t, c.server, "k") }) // within its lease
}

// The clean-up would go on for as long as the lease in doubt could last.
func closeCleanUp(c *contractRig) {
	c.awayAfter("acquire")
	_, err := c.locker.TryLock(c.ctx, "k", holdfast.FixedLease(time.Hour))
	require.ErrorIs(c.t, err, holdfast.ErrUnknown)
	closed := make(chan error, 1)
	go func() { closed <- c.locker.Close() }()
	select {
	case <-closed:
	case <-c.ctx.Done():
		require.FailNow(c.t, "Close hangs")
	}
}

// Over a slow link there is no time for a call for each.
func closeMany(c *contractRig) {
	const keys = 1000
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() { lock(c.t, c.locker, c.ctx, fmt.Sprint("k", i)) })
	}
	all.Wait()
	require.NoError(c.t, c.locker.Close())
	c.mu.Lock()
	most := 0
	for _, sent := range c.sent { // nodes share calls as it happens, each in its way
		most = max(most, len(slices.DeleteFunc(slices.Clone(sent), func(what string) bool { return what != "release" })))
	}
	c.mu.Unlock()
	require.Positive(c.t, most)
	require.Less(c.t, most, keys/4)
	for i := range keys {
		gone(c.t, c.server, fmt.Sprint("k", i))
	}
}

func closeGone(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	c.server.Kill()
	require.ErrorIs(c.t, c.locker.Close(), holdfast.ErrUnknown)
	c.ended(l, holdfast.ErrClosed)
	c.server.Restart()
}

func closeUse(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	bound := context.WithoutCancel(l.Bind(c.ctx))
	require.NoError(c.t, c.locker.Close())
	c.commands()
	for _, ctx := range []context.Context{c.ctx, bound} {
		for name, call := range map[string]func() error{
			"Lock":        func() error { _, err := c.locker.Lock(ctx, "k"); return err },
			"TryLock":     func() error { _, err := c.locker.TryLock(ctx, "k"); return err },
			"TryLockFor":  func() error { _, err := c.locker.TryLockFor(ctx, "k", time.Hour); return err },
			"Do":          func() error { return c.locker.Do(ctx, "k", unreachable(c.t)) },
			"Inspect":     func() error { _, err := c.locker.Inspect(ctx, "k"); return err },
			"ForceUnlock": func() error { _, err := c.locker.ForceUnlock(ctx, "k"); return err },
		} {
			require.ErrorIs(c.t, call(), holdfast.ErrClosed, name)
		}
	}
	c.quiet()
}

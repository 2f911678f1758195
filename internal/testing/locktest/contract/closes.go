package contract

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

var closeCases = []testCase{
	{"Close_ReleasesAndEndsAll", ofOneHolder, defaults, closeAll},
	{"Close_Unused", anywhere, defaults, closeUnused},
	{"Close_DuringDo", anywhere, defaults, closeDo},
	{"Close_WithACallUnderWay", servers, defaults, closeUnderWay},
	{"Close_DuringARenewal", servers, defaults, closeRenewal},
	{"Close_IsBoundedWhileRedisHangs", servers | ofOneHolder, locktest.Options{Lease: 30 * time.Second}, closeHanging},
	{"Close_IsBoundedDuringAnUndo", servers, locktest.Options{Lease: 300 * time.Millisecond}, closeUndo},
	{"Close_RepeatsWhatFails", servers | ofOneHolder, defaults, closeRepeats},
	{"Close_NamesKeys", servers, locktest.Options{Lease: 30 * time.Second}, closeNames},
	{"Close_ReleasesManyInFewCalls", servers, defaults, closeMany},
	{"Close_RefusesAllUse", anywhere, defaults, closeUse},
}

func closeAll(c *harness) {
	var leases []*holdfast.Lease
	for _, key := range []string{"a", "b", "nested"} {
		leases = append(leases, locktest.Lock(c.T, c.Locker, c.ctx, key))
	}
	leases = append(leases, locktest.Lock(c.T, c.Locker, leases[2].Bind(c.ctx), "nested"))
	leases = append(leases, locktest.Lock(c.T, c.Locker, c.ctx, "fixed", holdfast.FixedLease(time.Hour)))
	their := locktest.Lock(c.T, c.Other, c.ctx, "theirs")
	waits := []<-chan locktest.Acquired{locktest.GoLock(c.Locker, c.ctx, "theirs"), c.queue(c.Locker, "a"), c.queue(c.Locker, "a")}
	c.AwaitWaiters("theirs", 1)
	next := locktest.GoLock(c.Other, c.ctx, "b")
	c.AwaitWaiters("b", 1)

	require.NoError(c.T, c.Locker.Close())
	c.unlock(locktest.Got(c.T, next)) // it was told
	for _, w := range waits {
		locktest.RequireSentinel(c.T, (<-w).Err, holdfast.ErrClosed)
	}
	for _, l := range leases {
		c.ended(l, holdfast.ErrClosed)
		c.free(l.Key())
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrClosed)
		locktest.RequireSentinel(c.T, l.Unlock(c.ctx), holdfast.ErrReleased)
	}
	c.Traceless("theirs")
	require.NoError(c.T, c.Locker.Close())
	c.unlock(their)
	c.Tidy("theirs")
}

func closeUnused(c *harness) {
	l := locktest.Must(c.Kind.New(c.Client, locktest.Options{}))(c.T)
	require.NoError(c.T, l.Close())
	require.NoError(c.T, l.Close())
	c.quiet()
}

func closeDo(c *harness) {
	err := c.Locker.Do(c.ctx, "k", func(ctx context.Context) error {
		require.NoError(c.T, c.Locker.Close())
		<-ctx.Done()
		require.ErrorIs(c.T, context.Cause(ctx), holdfast.ErrClosed)
		return errMine
	})
	require.ErrorIs(c.T, err, errMine)
	require.ErrorIs(c.T, err, holdfast.ErrClosed)
	c.free("k")
}

// A lock that Redis grants while the locker closes goes to no caller.
func closeUnderWay(c *harness) {
	held, letGo := c.hold(c.Proxy.OnReply, "acquire")
	done := locktest.GoLock(c.Locker, c.ctx, "k")
	locktest.Within(c.T, held)
	closed := locktest.Go(c.Locker.Close)
	// It is closed for this key when it says so, and waits for the call.
	locktest.Await(c.T, func() bool {
		return errors.Is(locktest.ErrOf(c.Locker.TryLock(c.ctx, "k")), holdfast.ErrClosed)
	})
	letGo()
	require.NoError(c.T, <-closed)
	a := <-done
	require.Nil(c.T, a.Lease)
	require.Error(c.T, a.Err)
	c.Tidy("k")
}

// A renewal that Close ends has not failed.
func closeRenewal(c *harness) {
	var logs redistest.Log
	l := c.Kind.Open(c.T, c.Client, locktest.Options{Lease: 30 * time.Second, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	locktest.Lock(c.T, l, c.ctx, "k")
	held, letGo := c.hold(c.Proxy.OnRequest, "renew")
	locktest.Within(c.T, held)
	closed := locktest.Go(l.Close)
	locktest.Await(c.T, func() bool { return errors.Is(locktest.ErrOf(l.TryLock(c.ctx, "k")), holdfast.ErrClosed) })
	letGo()
	require.NoError(c.T, <-closed)
	require.NotContains(c.T, logs.String(), "renewal")
}

func closeHanging(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	waiter := c.queue(c.Locker, "k")
	their := locktest.Lock(c.T, c.Other, c.ctx, "theirs")
	far := locktest.GoLock(c.Locker, c.ctx, "theirs")
	c.AwaitWaiters("theirs", 1)
	c.Proxy.HoldRequests(true)
	defer c.Proxy.HoldRequests(false)
	err := c.Locker.Close()
	locktest.RequireSentinel(c.T, err, holdfast.ErrUnknown, `"k"`)
	if c.Kind.Fair {
		require.ErrorContains(c.T, err, `"theirs"`)
	}
	ownTime(c.T, err)
	require.Error(c.T, l.Err())
	require.ErrorIs(c.T, (<-waiter).Err, holdfast.ErrClosed)
	require.ErrorIs(c.T, (<-far).Err, holdfast.ErrClosed)
	require.NoError(c.T, c.Locker.Close())
	_ = their.Unlock(c.ctx)
	locktest.Await(c.T, func() bool { return !locktest.Exists(c.T, c.Server, c.Name("k")) }) // within its lease
}

// Close gives up an undo, which would go on for as long as the lease in doubt could last.
func closeUndo(c *harness) {
	c.awayAfter("acquire")
	require.ErrorIs(c.T, locktest.ErrOf(c.Locker.TryLock(c.ctx, "k", holdfast.FixedLease(time.Hour))), holdfast.ErrUnknown)
	closed := locktest.Go(c.Locker.Close)
	_ = locktest.Within(c.T, closed)
}

// Close releases many keys by few calls: over a slow link there is no time for one for each.
func closeMany(c *harness) {
	const keys = 1000
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() { locktest.Lock(c.T, c.Locker, c.ctx, fmt.Sprint("k", i)) })
	}
	all.Wait()
	require.NoError(c.T, c.Locker.Close())
	c.mu.Lock()
	most := 0
	for _, sent := range c.sent { // nodes share calls as it happens, each in its way
		most = max(most, len(slices.DeleteFunc(slices.Clone(sent), func(what string) bool { return what != "release" })))
	}
	c.mu.Unlock()
	require.Positive(c.T, most)
	if !c.Kind.Cluster { // there each key has a call of its own
		require.Less(c.T, most, keys/4)
	}
	for i := range keys {
		locktest.Gone(c.T, c.Server, c.Name(fmt.Sprint("k", i)))
	}
}

// Connections are cut as Close releases a key and gives up a place.
func closeRepeats(c *harness) {
	locktest.Lock(c.T, c.Locker, c.ctx, "k")
	their := locktest.Lock(c.T, c.Other, c.ctx, "theirs")
	far := c.inQueue(c.Locker, "theirs")
	c.AwaitWaiters("theirs", 1)
	var cuts atomic.Int32
	c.Proxy.OnRequest(redistest.Always(func(cmd []string) bool {
		return locktest.Is("release", "end_round")(cmd) && cuts.Add(1) <= 5
	}, redistest.Cut))
	require.NoError(c.T, c.Locker.Close())
	require.Positive(c.T, cuts.Load())
	require.ErrorIs(c.T, (<-far).Err, holdfast.ErrClosed)
	locktest.Gone(c.T, c.Server, c.Name("k"))
	c.Traceless("theirs")
	c.unlock(their)
	c.Tidy("theirs")
}

// What could not be released is named, as far as a text may be long.
func closeNames(c *harness) {
	var leases []*holdfast.Lease
	for i := range 12 {
		leases = append(leases, locktest.Lock(c.T, c.Locker, c.ctx, fmt.Sprintf("k%02d", i)))
	}
	c.Proxy.Refuse(true)
	c.Proxy.Cut()
	err := c.Locker.Close()
	locktest.RequireSentinel(c.T, err, holdfast.ErrUnknown, `"k00", "k01", "k02", "k03", "k04", "k05", "k06", "k07", "k08", "k09" and 2 more: `)
	for _, l := range leases {
		c.ended(l, holdfast.ErrClosed)
	}
	c.Proxy.Refuse(false)
}

func closeUse(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	bound := context.WithoutCancel(l.Bind(c.ctx))
	require.NoError(c.T, c.Locker.Close())
	c.commands()
	for _, ctx := range []context.Context{c.ctx, bound} {
		for name, call := range c.everyCall(ctx, "k") {
			require.ErrorIs(c.T, call(), holdfast.ErrClosed, name)
		}
	}
	c.quiet()
}

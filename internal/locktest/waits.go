package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

var waitCases = []contractCase{
	{"Wait_DeadlineBoundsTheWaitNotTheHold", defaults, waitNotHold},
	{"Wait_TryLockForEndsWithErrNotAcquired", defaults, waitLimited},
	{"Wait_OfZeroIsTryLock", defaults, waitZero},
	{"Wait_NegativeIsRefused", defaults, waitNegative},
	{"Wait_TryLockAnswersLocallyWhereItCan", defaults, waitLocally},
	{"Wait_InOrderWithinALocker", defaults, waitOrder},
	{"Wait_QueueFull", Options{MaxWaiters: 2}, waitQueueFull},
	{"Wait_QueueFullForTheFirstWaiter", Options{MaxWaiters: 1}, waitQueueFullFirst},
	{"Wait_QueueFullAfterTheFirstAttempt", Options{MaxWaiters: 1}, waitQueueFullMeanwhile},
	{"Wait_RidesOutAnOutage", Options{Lease: 3 * time.Second, MaxLease: 3 * time.Second}, waitOutage},
	{"Wait_MaxOutage", Options{MaxOutage: &shortOutage}, waitMaxOutage},
	{"Wait_MaxOutageIsOneLeaseByDefault", Options{Lease: shortOutage, MaxLease: shortOutage}, waitMaxOutage},
	{"Wait_NoOutage", Options{MaxOutage: &noOutage}, waitNoOutage},
	{"Wait_DoesNotCureARefusal", defaults, waitRefused},
}

var noOutage, shortOutage = time.Duration(0), 600 * time.Millisecond

func waitNotHold(c *contractRig) {
	ctx, cancel := context.WithTimeout(c.ctx, 2*time.Second)
	defer cancel()
	l := lock(c.t, c.locker, ctx, "k")
	limited, err := c.locker.TryLockFor(c.ctx, "limited", 2*time.Second)
	require.NoError(c.t, err)
	<-ctx.Done()
	for _, l := range []*holdfast.Lease{l, limited} {
		c.lives(l)
		require.Equal(c.t, 1, c.entries(l.Key()))
		c.unlock(l)
	}
}

func waitLimited(c *contractRig) {
	mine := lock(c.t, c.locker, c.ctx, "mine")
	their := lock(c.t, c.other, c.ctx, "theirs")
	for _, key := range []string{"mine", "theirs"} {
		before := time.Now()
		l, err := c.locker.TryLockFor(c.ctx, key, time.Second)
		require.Nil(c.t, l)
		require.GreaterOrEqual(c.t, time.Since(before), time.Second)
		require.ErrorIs(c.t, err, holdfast.ErrNotAcquired)
		require.NotErrorIs(c.t, err, context.DeadlineExceeded) // it is no context of the caller's
	}
	c.unlock(mine)
	c.unlock(their)
	c.tidy("theirs")
}

func waitZero(c *contractRig) {
	l, err := c.locker.TryLockFor(c.ctx, "k", 0)
	require.NoError(c.t, err)
	c.unlock(l)
	l = lock(c.t, c.other, c.ctx, "k")
	c.commands()
	_, err = c.locker.TryLockFor(c.ctx, "k", 0)
	require.ErrorIs(c.t, err, holdfast.ErrNotAcquired)
	c.held(c.locker, "k")
	require.Equal(c.t, []string{"acquire", "acquire"}, c.commands())
	c.unlock(l)
}

func waitNegative(c *contractRig) {
	_, err := c.locker.TryLockFor(c.ctx, "k", -1)
	require.ErrorContains(c.t, err, "TryLockFor")
	require.ErrorContains(c.t, err, "negative")
	c.quiet()
}

func waitLocally(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "held")
	their := lock(c.t, c.other, c.ctx, "wanted")
	waiter := lockAside(c.locker, c.ctx, "wanted")
	c.awaitWaiters("wanted", 1)
	if c.kind.Nodes > 1 { // the last looks may be still to come, but each try that is sent counts
		for range 2 * c.kind.looks() {
			c.held(c.locker, "held")
			c.held(c.locker, "wanted")
		}
		require.LessOrEqual(c.t, c.mostSent("acquire"), 1+c.kind.looks())
	} else {
		// What follows the subscription may be still on its way.
		await(c.t, func() bool { return len(c.noted()) == 4 })
		require.Equal(c.t, []string{"acquire", "acquire", "subscribe", c.kind.waitVerb()}, c.commands())
		c.held(c.locker, "held")
		c.held(c.locker, "wanted")
		c.quiet()
	}
	c.unlock(their)
	c.unlock(got(c.t, waiter))
	c.unlock(l)
	c.tidy("wanted")
}

// By hand-over, and where each lock comes from Redis, as those with terms do.
func waitOrder(c *contractRig) {
	for _, calls := range [][]holdfast.LockOption{nil, {holdfast.MaxHold(time.Hour)}} {
		holder := lock(c.t, c.locker, c.ctx, "k")
		var waits []<-chan acquired
		for range 8 {
			waits = append(waits, c.queue(c.locker, "k", calls...))
		}
		for _, w := range waits {
			c.unlock(holder)
			holder = got(c.t, w)
		}
		c.unlock(holder)
	}
}

func waitQueueFull(c *contractRig) {
	holder := lock(c.t, c.locker, c.ctx, "k")
	first := c.queue(c.locker, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	second := c.queueWith(ctx, c.locker, "k")
	c.commands()
	for range 2 {
		_, err := c.locker.Lock(c.ctx, "k")
		requireSentinel(c.t, err, holdfast.ErrQueueFull)
		_, err = c.locker.TryLockFor(c.ctx, "k", time.Minute)
		requireSentinel(c.t, err, holdfast.ErrQueueFull)
		requireSentinel(c.t, c.locker.Do(c.ctx, "k", unreachable(c.t)), holdfast.ErrQueueFull)
		c.held(c.locker, "k")
	}
	c.quiet()
	c.unlock(lock(c.t, c.locker, c.ctx, "another"))
	c.unlock(lock(c.t, c.locker, holder.Bind(c.ctx), "k"))

	cancel() // leaves a place
	require.ErrorIs(c.t, (<-second).err, context.Canceled)
	second = c.queue(c.locker, "k")
	c.unlock(holder)
	c.unlock(got(c.t, first))
	c.unlock(got(c.t, second))
}

// The bound is on waiters, not on the caller that finds a key free.
func waitQueueFullFirst(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	first := lockAside(c.locker, c.ctx, "k")
	c.awaitWaiters("k", 1)
	_, err := c.locker.Lock(c.ctx, "k")
	requireSentinel(c.t, err, holdfast.ErrQueueFull)
	c.unlock(their)
	c.unlock(got(c.t, first))
	c.tidy("k")
	c.unlock(lock(c.t, c.locker, c.ctx, "k"))
}

// While its first attempt was under way, another has taken the place.
func waitQueueFullMeanwhile(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	hook, held := holding("acquire")
	c.proxy.OnReply(hook)
	first := lockAside(c.locker, c.ctx, "k")
	within(c.t, held)
	second := c.queue(c.locker, "k")
	c.proxy.OnReply(nil)
	c.proxy.Release()
	requireSentinel(c.t, (<-first).err, holdfast.ErrQueueFull)
	c.unlock(their)
	c.unlock(got(c.t, second))
}

func waitOutage(c *contractRig) {
	c.server.Kill()
	done := make(chan error, 2)
	for range cap(done) {
		go func() { done <- c.locker.Do(c.ctx, "k", func(context.Context) error { return nil }) }()
	}
	c.server.Restart()
	require.NoError(c.t, <-done)
	require.NoError(c.t, <-done)
}

func waitMaxOutage(c *contractRig) {
	c.away()
	defer c.proxy.Refuse(false)
	for _, wait := range []func() (*holdfast.Lease, error){
		func() (*holdfast.Lease, error) { return c.locker.Lock(c.ctx, "k") },
		func() (*holdfast.Lease, error) { return c.locker.TryLockFor(c.ctx, "k", time.Hour) },
	} {
		before := time.Now()
		_, err := wait()
		require.ErrorIs(c.t, err, holdfast.ErrUnavailable)
		require.GreaterOrEqual(c.t, time.Since(before), shortOutage)
	}
	_, err := c.locker.TryLock(c.ctx, "k")
	require.ErrorIs(c.t, err, holdfast.ErrUnavailable)
	require.NotErrorIs(c.t, err, holdfast.ErrNotAcquired)

	// The next call is an attempt of its own.
	_, err = c.locker.Lock(c.ctx, "k")
	c.proxy.Refuse(false)
	require.ErrorIs(c.t, err, holdfast.ErrUnavailable)
	c.unlock(c.backAgain("k"))
}

// backAgain is a TryLock that must succeed, as Redis answers again. A quorum does not
// ask nodes that are known to be away, until it has found them back.
func (c *contractRig) backAgain(key string) (l *holdfast.Lease) {
	c.t.Helper()
	if c.kind.Nodes == 0 {
		l, err := c.locker.TryLock(c.ctx, key)
		require.NoError(c.t, err)
		return l
	}
	await(c.t, func() bool {
		var err error
		l, err = c.locker.TryLock(c.ctx, key)
		return err == nil
	})
	return l
}

func waitNoOutage(c *contractRig) {
	c.away()
	defer c.proxy.Refuse(false)
	await(c.t, func() bool { // connections may be found dead only now
		_, err := c.locker.Lock(c.ctx, "k")
		require.Error(c.t, err)
		return errors.Is(err, holdfast.ErrUnavailable)
	})
}

func waitRefused(c *contractRig) {
	refused := func(err error) {
		c.t.Helper()
		if err == nil || isOurs(err) {
			require.Failf(c.t, "a refusal is returned as it is", "%v", err)
		}
	}
	lock(c.t, c.other, c.ctx, "k")
	waits := []<-chan acquired{lockAside(c.locker, c.ctx, "k")}
	c.awaitWaiters("k", 1)
	waits = append(waits, c.queue(c.locker, "k"))
	c.server.Do(c.t, "SET", "k", "not a lock")
	c.server.Do(c.t, "PUBLISH", scripts.Channel("k"), "0")
	for _, w := range waits {
		refused((<-w).err)
	}
	c.traceless("k")
	for _, wait := range []func() (*holdfast.Lease, error){
		func() (*holdfast.Lease, error) { return c.locker.Lock(c.ctx, "k") },
		func() (*holdfast.Lease, error) { return c.locker.TryLockFor(c.ctx, "k", time.Hour) },
		func() (*holdfast.Lease, error) { return c.locker.TryLock(c.ctx, "k") },
	} {
		c.commands()
		_, err := wait()
		refused(err)
		require.Equal(c.t, []string{"acquire"}, c.commands())
	}
}

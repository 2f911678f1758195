package contract

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/scripts"
)

var waitCases = []testCase{
	{"Wait_DeadlineBoundsTheWaitNotTheHold", defaults, waitNotHold},
	{"Wait_TryLockForEndsWithErrNotAcquired", defaults, waitLimited},
	{"Wait_OfZeroIsTryLock", defaults, waitZero},
	{"Wait_TryLockAnswersLocallyWhereItCan", defaults, waitLocally},
	{"Wait_InOrderWithinALocker", defaults, waitOrder},
	{"Wait_QueueFull", locktest.Options{MaxWaiters: 2}, waitQueueFull},
	{"Wait_QueueFullForTheFirstWaiter", locktest.Options{MaxWaiters: 1}, waitQueueFullFirst},
	{"Wait_QueueFullAfterTheFirstAttempt", locktest.Options{MaxWaiters: 1}, waitQueueFullMeanwhile},
	{"Wait_RidesOutAnOutage", locktest.Options{Lease: 10 * time.Second, MaxLease: 10 * time.Second}, waitOutage},
	{"Wait_MaxOutage", locktest.Options{MaxOutage: &shortOutage}, waitMaxOutage},
	{"Wait_MaxOutageIsOneLeaseByDefault", locktest.Options{Lease: shortOutage, MaxLease: shortOutage}, waitMaxOutage},
	{"Wait_NoOutage", locktest.Options{MaxOutage: &noOutage}, waitNoOutage},
	{"Wait_DoesNotCureARefusal", defaults, waitRefused},
}

var noOutage, shortOutage = time.Duration(0), 3 * time.Second

func waitNotHold(c *harness) {
	ctx, cancel := context.WithTimeout(c.ctx, 2*time.Second)
	defer cancel()
	l := locktest.Lock(c.T, c.Locker, ctx, "k")
	limited, err := c.Locker.TryLockFor(c.ctx, "limited", 2*time.Second)
	require.NoError(c.T, err)
	<-ctx.Done()
	for _, l := range []*holdfast.Lease{l, limited} {
		c.lives(l)
		require.Equal(c.T, 1, c.Entries(l.Key()))
		c.unlock(l)
	}
}

func waitLimited(c *harness) {
	mine := locktest.Lock(c.T, c.Locker, c.ctx, "mine")
	their := locktest.Lock(c.T, c.Other, c.ctx, "theirs")
	for _, key := range []string{"mine", "theirs"} {
		before := time.Now()
		l, err := c.Locker.TryLockFor(c.ctx, key, time.Second)
		require.Nil(c.T, l)
		require.GreaterOrEqual(c.T, time.Since(before), time.Second)
		require.ErrorIs(c.T, err, holdfast.ErrNotAcquired)
		require.NotErrorIs(c.T, err, context.DeadlineExceeded) // it is no context of the caller's
	}
	c.unlock(mine)
	c.unlock(their)
	c.Tidy("theirs")
}

func waitZero(c *harness) {
	l, err := c.Locker.TryLockFor(c.ctx, "k", 0)
	require.NoError(c.T, err)
	c.unlock(l)
	l = locktest.Lock(c.T, c.Other, c.ctx, "k")
	c.commands()
	_, err = c.Locker.TryLockFor(c.ctx, "k", 0)
	require.ErrorIs(c.T, err, holdfast.ErrNotAcquired)
	c.held(c.Locker, "k")
	c.sends("acquire", "acquire")
	c.unlock(l)
}

func waitLocally(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "held")
	their := locktest.Lock(c.T, c.Other, c.ctx, "wanted")
	waiter := locktest.GoLock(c.Locker, c.ctx, "wanted")
	c.AwaitWaiters("wanted", 1)
	if c.Kind.Nodes > 1 { // the last looks may be still to come, but each try that is sent counts
		for range 2 * c.Kind.Looks() {
			c.held(c.Locker, "held")
			c.held(c.Locker, "wanted")
		}
		require.LessOrEqual(c.T, c.mostSent("acquire"), 1+c.Kind.Looks())
	} else {
		// What follows the subscription may be still on its way.
		locktest.Await(c.T, func() bool { return len(c.noted()) == 4 })
		require.Equal(c.T, []string{"acquire", "acquire", "subscribe", c.Kind.WaitVerb()}, c.commands())
		c.held(c.Locker, "held")
		c.held(c.Locker, "wanted")
		c.quiet()
	}
	c.unlock(their)
	c.unlock(locktest.Got(c.T, waiter))
	c.unlock(l)
	c.Tidy("wanted")
}

// By hand-over, and with terms that take each lock from Redis.
func waitOrder(c *harness) {
	for _, calls := range [][]holdfast.LockOption{nil, {holdfast.MaxHold(time.Hour)}} {
		holder := locktest.Lock(c.T, c.Locker, c.ctx, "k")
		c.unlock(c.serve(holder, c.queues(8, "k", calls...), nil))
	}
}

func waitQueueFull(c *harness) {
	holder := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	first := c.queue(c.Locker, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	second := c.queueWith(ctx, c.Locker, "k")
	if c.Kind.Fair {
		locktest.Await(c.T, func() bool { return len(locktest.Queued(c.T, c.ServerOf("k"), c.Name("k"))) == 2 })
	}
	c.commands()
	for range 2 {
		_, err := c.Locker.Lock(c.ctx, "k")
		locktest.RequireSentinel(c.T, err, holdfast.ErrQueueFull)
		_, err = c.Locker.TryLockFor(c.ctx, "k", time.Minute)
		locktest.RequireSentinel(c.T, err, holdfast.ErrQueueFull)
		locktest.RequireSentinel(c.T, c.Locker.Do(c.ctx, "k", unreachable(c.T)), holdfast.ErrQueueFull)
		c.held(c.Locker, "k")
	}
	c.quiet()
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "another"))
	c.unlock(locktest.Lock(c.T, c.Locker, holder.Bind(c.ctx), "k"))

	cancel() // leaves a place
	require.ErrorIs(c.T, (<-second).Err, context.Canceled)
	second = c.queue(c.Locker, "k")
	c.unlock(holder)
	c.unlock(locktest.Got(c.T, first))
	c.unlock(locktest.Got(c.T, second))
}

// The bound is on waiters, not on the caller that finds a key free.
func waitQueueFullFirst(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	first := locktest.GoLock(c.Locker, c.ctx, "k")
	c.AwaitWaiters("k", 1)
	_, err := c.Locker.Lock(c.ctx, "k")
	locktest.RequireSentinel(c.T, err, holdfast.ErrQueueFull)
	c.unlock(their)
	c.unlock(locktest.Got(c.T, first))
	c.Tidy("k")
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
}

// While its first attempt was under way, another has taken the place.
func waitQueueFullMeanwhile(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	first, second := c.overtaken()
	locktest.RequireSentinel(c.T, (<-first).Err, holdfast.ErrQueueFull)
	c.unlock(their)
	c.unlock(locktest.Got(c.T, second))
}

// overtaken begins two calls for a key that another holds. The second waits before the first
// attempt of the first is answered.
func (c *harness) overtaken() (first, second <-chan locktest.Acquired) {
	c.T.Helper()
	held, letGo := c.hold(c.Proxy.OnReply, "acquire")
	first = locktest.GoLock(c.Locker, c.ctx, "k")
	locktest.Within(c.T, held)
	second = c.queue(c.Locker, "k")
	letGo()
	return first, second
}

func waitOutage(c *harness) {
	c.Server.Kill()
	done := make(chan error, 2)
	for range cap(done) {
		go func() { done <- c.Locker.Do(c.ctx, "k", func(context.Context) error { return nil }) }()
	}
	c.Server.Restart()
	require.NoError(c.T, <-done)
	require.NoError(c.T, <-done)
}

func waitMaxOutage(c *harness) {
	c.away()
	defer c.back()
	for _, wait := range []func() (*holdfast.Lease, error){
		func() (*holdfast.Lease, error) { return c.Locker.Lock(c.ctx, "k") },
		func() (*holdfast.Lease, error) { return c.Locker.TryLockFor(c.ctx, "k", time.Hour) },
	} {
		before := time.Now()
		_, err := wait()
		require.ErrorIs(c.T, err, holdfast.ErrUnavailable)
		require.GreaterOrEqual(c.T, time.Since(before), shortOutage)
	}
	_, err := c.Locker.TryLock(c.ctx, "k")
	require.ErrorIs(c.T, err, holdfast.ErrUnavailable)
	require.NotErrorIs(c.T, err, holdfast.ErrNotAcquired)

	// The next call is an attempt of its own.
	_, err = c.Locker.Lock(c.ctx, "k")
	c.back()
	require.ErrorIs(c.T, err, holdfast.ErrUnavailable)
	c.unlock(c.backAgain("k"))
}

// backAgain is a TryLock that succeeds soon, as Redis answers again. A quorum does not ask
// nodes that are known to be away, until it has found them back, and a client of one Redis
// may still wait for a dial that began before.
func (c *harness) backAgain(key string) (l *holdfast.Lease) {
	c.T.Helper()
	locktest.Await(c.T, func() bool {
		var err error
		l, err = c.Locker.TryLock(c.ctx, key)
		return err == nil
	})
	return l
}

func waitNoOutage(c *harness) {
	c.away()
	defer c.back()
	locktest.Await(c.T, func() bool { // connections may be found dead only now
		_, err := c.Locker.Lock(c.ctx, "k")
		require.Error(c.T, err)
		return errors.Is(err, holdfast.ErrUnavailable)
	})
}

func waitRefused(c *harness) {
	locktest.Lock(c.T, c.Other, c.ctx, "k")
	waits := []<-chan locktest.Acquired{locktest.GoLock(c.Locker, c.ctx, "k")}
	c.AwaitWaiters("k", 1)
	waits = append(waits, c.queue(c.Locker, "k"))
	c.Server.Do(c.T, "SET", c.Name("k"), "not a lock")
	locktest.Publish(c.T, c.Server, scripts.Channel(c.Name("k")), "0")
	for _, w := range waits {
		locktest.RequireSentinel(c.T, (<-w).Err, holdfast.ErrWrongType)
	}
	c.Traceless("k")
	for _, wait := range []func() (*holdfast.Lease, error){
		func() (*holdfast.Lease, error) { return c.Locker.Lock(c.ctx, "k") },
		func() (*holdfast.Lease, error) { return c.Locker.TryLockFor(c.ctx, "k", time.Hour) },
		func() (*holdfast.Lease, error) { return c.Locker.TryLock(c.ctx, "k") },
	} {
		c.commands()
		_, err := wait()
		locktest.RequireSentinel(c.T, err, holdfast.ErrWrongType)
		require.Equal(c.T, []string{"acquire"}, c.commands())
	}
}

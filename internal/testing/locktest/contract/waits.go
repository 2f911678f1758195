package contract

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

var waitCases = []testCase{
	{"Wait_DeadlineBoundsTheWaitNotTheHold", anywhere, defaults, waitNotHold},
	{"Wait_TryLockForEndsWithErrNotAcquired", ofOneHolder, defaults, waitLimited},
	{"Wait_OfZeroIsTryLock", ofOneHolder, defaults, waitZero},
	{"Wait_TryLockAnswersLocallyWhereItCan", servers | ofOneHolder | ofLocks, defaults, waitLocally},
	{"Wait_InOrderWithinALocker", ofOneHolder, defaults, waitOrder},
	{"Wait_TooManyWaiters", ofOneHolder, locktest.Options{MaxWaiters: 2, Lease: locktest.Long, WaiterTTL: locktest.Long}, waitTooMany},
	{"Wait_TooManyWaitersForTheFirstWaiter", ofOneHolder, locktest.Options{MaxWaiters: 1}, waitTooManyFirst},
	{"Wait_TooManyWaitersAfterTheFirstAttempt", servers | ofOneHolder | ofLocks, locktest.Options{MaxWaiters: 1}, waitTooManyMeanwhile},
	{"Wait_RidesOutAnOutage", servers, locktest.Options{Lease: 10 * time.Second, MaxLease: 10 * time.Second, MaxOutage: &longOutage}, waitOutage},
	{"Wait_MaxOutage", ownRedis, locktest.Options{MaxOutage: &shortOutage}, waitMaxOutage},
	{"Wait_MaxOutageIsOneLeaseByDefault", ownRedis, locktest.Options{Lease: shortOutage, MaxLease: shortOutage}, waitMaxOutage},
	{"Wait_NoOutage", ownRedis, locktest.Options{MaxOutage: &noOutage}, waitNoOutage},
	{"Wait_DoesNotCureARefusal", servers | ofOneHolder, defaults, waitRefused},
}

var noOutage, shortOutage, longOutage = time.Duration(0), 3 * time.Second, time.Hour

func waitNotHold(c *harness) {
	ctx, cancel := context.WithTimeout(c.ctx, c.Kind.Limit())
	defer cancel()
	l := locktest.Lock(c.T, c.Locker, ctx, "k")
	limited := locktest.Must(c.Locker.TryLockFor(c.ctx, "limited", c.Kind.Limit()))(c.T)
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
		l, err := c.Locker.TryLockFor(c.ctx, key, c.Kind.Limit())
		require.Nil(c.T, l)
		require.GreaterOrEqual(c.T, time.Since(before), c.Kind.Limit())
		require.ErrorIs(c.T, err, holdfast.ErrNotAcquired)
		require.NotErrorIs(c.T, err, context.DeadlineExceeded) // it is no context of the caller's
	}
	c.unlock(mine)
	c.unlock(their)
	c.Tidy("theirs")
}

func waitZero(c *harness) {
	l := locktest.Must(c.Locker.TryLockFor(c.ctx, "k", 0))(c.T)
	c.unlock(l)
	l = locktest.Lock(c.T, c.Other, c.ctx, "k")
	c.commands()
	require.ErrorIs(c.T, locktest.ErrOf(c.Locker.TryLockFor(c.ctx, "k", 0)), holdfast.ErrNotAcquired)
	c.held(c.Locker, "k")
	c.sends("acquire", "acquire")
	c.unlock(l)
}

func waitLocally(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "held")
	their := locktest.Lock(c.T, c.Other, c.ctx, "wanted")
	began := time.Now()
	waiter := locktest.GoLock(c.Locker, c.ctx, "wanted")
	c.AwaitWaiters("wanted", 1)
	if c.probes() { // the last ones may be still to come, but each try that is sent counts
		for range 2 * c.Kind.MaxProbes() {
			c.held(c.Locker, "held")
			c.held(c.Locker, "wanted")
		}
		require.LessOrEqual(c.T, c.maxSent("acquire"), 1+c.maxAttempts(began))
	} else {
		// What follows the subscription may be still on its way.
		locktest.Await(c.T, func() bool { return len(c.noted()) == 4 })
		require.Equal(c.T, []string{"acquire", "acquire", "subscribe", c.Kind.WaitVerb()}, c.commands())
		c.held(c.Locker, "held")
		c.held(c.Locker, "wanted")
		c.quiet()
	}
	c.unlock(locktest.Next(c.T, their, waiter))
	c.unlock(l)
	c.Tidy("wanted")
}

// Waiters are served in order by handover, and with terms that take each lock from Redis.
func waitOrder(c *harness) {
	for _, opts := range [][]holdfast.LockOption{nil, {holdfast.MaxHold(time.Hour)}} {
		holder := locktest.Lock(c.T, c.Locker, c.ctx, "k")
		c.unlock(c.serve(holder, c.queues(8, "k", opts...), nil))
	}
}

func waitTooMany(c *harness) {
	holder := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	first := c.queue(c.Locker, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	second := c.queueWith(ctx, c.Locker, "k")
	if c.Kind.Fair {
		c.AwaitQueue("k", 2)
	}
	c.commands()
	for range 2 {
		locktest.RequireSentinel(c.T, locktest.ErrOf(c.Locker.Lock(c.ctx, "k")), holdfast.ErrTooManyWaiters)
		locktest.RequireSentinel(c.T, locktest.ErrOf(c.Locker.TryLockFor(c.ctx, "k", time.Minute)), holdfast.ErrTooManyWaiters)
		locktest.RequireSentinel(c.T, c.Locker.Do(c.ctx, "k", unreachable(c.T)), holdfast.ErrTooManyWaiters)
		c.held(c.Locker, "k")
	}
	if c.Kind.Permits { // an attempt of the waiters, once they are subscribed, may come as late as now
		require.Less(c.T, len(c.commands()), 6, "one for each call above")
	} else {
		c.quiet()
	}
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "another"))
	c.unlock(locktest.Lock(c.T, c.Locker, holder.Bind(c.ctx), "k"))

	cancel() // leaves a place
	require.ErrorIs(c.T, (<-second).Err, context.Canceled)
	second = c.queue(c.Locker, "k")
	c.unlock(locktest.Next(c.T, holder, first))
	c.unlock(locktest.Got(c.T, second))
}

// The bound is on waiters, not on the caller that finds a key free.
func waitTooManyFirst(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	first := locktest.GoLock(c.Locker, c.ctx, "k")
	c.AwaitWaiters("k", 1)
	locktest.RequireSentinel(c.T, locktest.ErrOf(c.Locker.Lock(c.ctx, "k")), holdfast.ErrTooManyWaiters)
	c.unlock(locktest.Next(c.T, their, first))
	c.Tidy("k")
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
}

// While its first attempt was under way, another has taken the place.
func waitTooManyMeanwhile(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	first, second := c.overtaken()
	locktest.RequireSentinel(c.T, (<-first).Err, holdfast.ErrTooManyWaiters)
	c.unlock(locktest.Next(c.T, their, second))
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
		require.ErrorIs(c.T, locktest.ErrOf(wait()), holdfast.ErrUnavailable)
		require.GreaterOrEqual(c.T, time.Since(before), shortOutage)
	}
	_, err := c.Locker.TryLock(c.ctx, "k")
	require.ErrorIs(c.T, err, holdfast.ErrUnavailable)
	require.NotErrorIs(c.T, err, holdfast.ErrNotAcquired)

	// The next call is an attempt of its own.
	_, err = c.Locker.Lock(c.ctx, "k")
	c.back()
	require.ErrorIs(c.T, err, holdfast.ErrUnavailable)
	c.unlock(locktest.Retry(c.T, c.Locker, "k"))
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
	locktest.Publish(c.T, c.Server, c.Kind.Channel(c.Name("k")), "0")
	for _, w := range waits {
		locktest.RequireSentinel(c.T, (<-w).Err, holdfast.ErrWrongType)
	}
	c.Traceless("k")
	for name, call := range c.calls(c.ctx, "k") {
		c.commands()
		locktest.RequireSentinel(c.T, call(), holdfast.ErrWrongType)
		require.Equal(c.T, []string{"acquire"}, c.commands(), name)
	}
}

// plainCases are the promises of lock kinds with racing clients only.
var plainCases = []testCase{
	{"Wait_CostsNoCommand", servers | ofOneHolder, defaults, waitCosts},
	{"Wait_InOrderBehindTheFirstAttempt", servers | ofLocks, defaults, waitOrderFirst},
}

// A wait costs a subscription and a fixed number of probes, however many waiters there are.
func waitCosts(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	began := time.Now()
	waits := []<-chan locktest.Acquired{locktest.GoLock(c.Locker, c.ctx, "k")}
	if c.probes() {
		c.AwaitWaiters("k", 1)
	} else {
		locktest.Await(c.T, func() bool { return len(c.noted()) == 3 })
		require.Equal(c.T, []string{"acquire", "subscribe", "acquire"}, c.commands())
	}
	waits = append(waits, c.queues(19, "k")...)
	if c.Kind.Virtual {
		time.Sleep(10 * time.Second) // in which polls would show; less than the holder's lease
	}
	if c.probes() {
		for range 100 { // round trips of another, in which probes without an end would show
			require.NoError(c.T, locktest.Cycle(c.Other, c.ctx, "another"))
		}
		require.LessOrEqual(c.T, c.maxSent("acquire"), c.maxAttempts(began))
	} else {
		c.quiet()
	}
	c.unlock(their)
	for _, w := range waits {
		c.unlock(locktest.Got(c.T, w))
	}
	if c.Kind.Virtual {
		require.LessOrEqual(c.T, c.maxSent("subscribe"), 1)
	}
	c.Tidy("k")
}

// probes reports whether waiters may make more attempts than the first and that after the subscription: a
// quorum does, a read/write lock each second, and others each second until a slow machine has subscribed.
func (c *harness) probes() bool { return c.Kind.Nodes > 1 || c.Kind.ReadWrite || !c.Kind.Virtual }

// maxAttempts is how many attempts the waiters of a key have made at most since then.
func (c *harness) maxAttempts(since time.Time) int {
	most := c.Kind.MaxProbes()
	if c.Kind.ReadWrite || !c.Kind.Virtual {
		most += int(1 + time.Since(since)/time.Second)
	}
	return most
}

// The caller of a first attempt goes before those that came during its attempt.
func waitOrderFirst(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	first, second := c.overtaken()
	c.unlock(locktest.Next(c.T, their, first))
	c.unlock(locktest.Got(c.T, second))
}

// maxSent is how often a command was sent since the last call of commands, to the node
// that got it most often.
func (c *harness) maxSent(name string) (most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sent := range c.sent {
		n := 0
		for _, s := range sent {
			if s == name {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

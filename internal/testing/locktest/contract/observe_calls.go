package contract

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

func observeCall(c *harness) {
	s := c.observed(defaults)
	before := time.Now()
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	locked := time.Now()
	time.Sleep(pause)
	c.unlock(l)
	held := time.Since(locked)
	require.NoError(c.T, c.Locker.Do(c.ctx, "another", func(context.Context) error { return nil }))
	require.Equal(c.T, []string{
		"acquired k by call", "released k", "acquired another by call", "released another",
	}, c.told(s))
	a, r := of[holdfast.AcquiredEvent](s)[0], of[holdfast.ReleasedEvent](s)[0]
	require.Positive(c.T, a.Waited)
	require.LessOrEqual(c.T, a.Waited, locked.Sub(before))
	require.GreaterOrEqual(c.T, r.Held, pause)
	require.LessOrEqual(c.T, r.Held, held+locked.Sub(before))
	require.NoError(c.T, r.Err)
}

// Each entry begins and ends by itself, in whatever order, and they are lost together.
func observeReentry(c *harness) {
	s := c.observed(defaults)
	nested := func() (outer, inner *holdfast.Lease) {
		outer = locktest.Lock(c.T, c.Locker, c.ctx, "k")
		time.Sleep(pause)
		return outer, locktest.Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
	}
	outer, inner := nested()
	c.unlock(inner)
	c.unlock(outer)
	require.ErrorIs(c.T, outer.Unlock(c.ctx), holdfast.ErrReleased)
	outer, inner = nested()
	c.unlock(outer)
	c.unlock(inner)
	outer, inner = nested()
	c.force(c.Locker, "k")
	require.ErrorIs(c.T, inner.Unlock(c.ctx), holdfast.ErrLost)
	require.ErrorIs(c.T, outer.Unlock(c.ctx), holdfast.ErrLost)
	begin := []string{"acquired k by call", "acquired k by re-entry"}
	require.Equal(c.T, slices.Concat(
		begin, []string{"released k", "released k"}, begin, []string{"released k", "released k"}, begin, []string{"lost k", "lost k"},
	), c.told(s))
	r := of[holdfast.ReleasedEvent](s)
	require.Less(c.T, r[0].Held+pause, r[1].Held)
}

// A hold passes on in memory; with fair, the queue has granted it before.
func observeHandover(c *harness) {
	var s *seen
	var told []string
	locktest.Await(c.T, func() bool { // a queue that listens late finds its grant by a heartbeat, which names nobody that follows
		s = c.observed(tenured)
		holder, waits := c.lineUp("k", 2)
		time.Sleep(pause)
		c.unlock(c.serve(holder, waits, nil))
		told = c.told(s, "failed", "*", "holdfast.Woken")
		acquired := of[holdfast.AcquiredEvent](s)
		return acquired[len(acquired)-2].How == holdfast.ByHandover && acquired[len(acquired)-1].How == holdfast.ByHandover
	})
	acquired, waiters := of[holdfast.AcquiredEvent](s), of[holdfast.WaitersEvent](s)
	for _, a := range acquired[len(acquired)-2:] {
		require.GreaterOrEqual(c.T, a.Waited, pause)
	}
	require.Equal(c.T, []string{
		"waiters k 1", "released k", "acquired k by handover", "waiters k 0", "released k", "acquired k by handover", "released k",
	}, told[len(told)-7:])
	require.Equal(c.T, holdfast.WaitersEvent{Key: "k", Waiting: 1}, waiters[0])
	if c.Kind.Fair {
		require.Equal(c.T, []holdfast.How{holdfast.ByCall, holdfast.ByGrant}, []holdfast.How{acquired[0].How, acquired[1].How})
		require.Len(c.T, acquired, 4)
	} else {
		require.Equal(c.T, []string{"acquired k by call", "waiters k 1", "waiters k 2"}, told[:len(told)-7])
	}
}

// A waiter of another process' lock is woken by a message.
func observeWoken(c *harness) {
	s := c.observed(defaults)
	how := holdfast.ByCall
	if c.Kind.Fair {
		how = holdfast.ByGrant
	}
	locktest.Await(c.T, func() bool { // it may get the key by its look after the subscription
		before := len(of[holdfast.AcquiredEvent](s))
		their := locktest.Lock(c.T, c.Other, c.ctx, "k")
		waiter := locktest.GoLock(c.Locker, c.ctx, "k")
		c.AwaitWaiters("k", 1)
		time.Sleep(pause)
		c.unlock(locktest.Next(c.T, their, waiter))
		a := await[holdfast.AcquiredEvent](c, s, before+1)[before]
		require.Equal(c.T, how, a.How)
		require.GreaterOrEqual(c.T, a.Waited, pause)
		c.Traceless("k")
		woken := of[holdfast.WokenEvent](s)
		return len(woken) > 0 && woken[0] == holdfast.WokenEvent{Key: "k"}
	})
}

// What a call returns is what the observer is told.
func observeFailed(c *harness) {
	s := c.observed(locktest.Options{MaxWaiters: 1})
	their := locktest.Lock(c.T, c.Other, c.ctx, "theirs")
	mine := locktest.Lock(c.T, c.Locker, c.ctx, "mine")
	n := 0
	failed := func(key string, want error, wait time.Duration, call func() error) {
		c.T.Helper()
		err := call()
		require.Error(c.T, err)
		if want != nil {
			require.ErrorIs(c.T, err, want)
		}
		n++
		e := await[holdfast.FailedEvent](c, s, n)[n-1]
		require.Equal(c.T, key, e.Key)
		require.Equal(c.T, err, e.Err)
		require.GreaterOrEqual(c.T, e.Waited, wait)
		require.Less(c.T, e.Waited, locktest.Patience)
	}
	try := func(key string) func() error {
		return func() error { return locktest.ErrOf(c.Locker.TryLock(c.ctx, key)) }
	}
	failed("theirs", holdfast.ErrNotAcquired, 0, try("theirs"))
	failed("mine", holdfast.ErrNotAcquired, 0, try("mine"))
	failed("", nil, 0, try(""))
	failed("theirs", holdfast.ErrNotAcquired, c.Kind.Limit(), func() error {
		return locktest.ErrOf(c.Locker.TryLockFor(c.ctx, "theirs", c.Kind.Limit()))
	})
	failed("mine", holdfast.ErrNotAcquired, c.Kind.Limit(), func() error {
		return c.Locker.Do(c.ctx, "mine", unreachable(c.T), holdfast.WaitAtMost(c.Kind.Limit()))
	})
	failed("mine", nil, 0, func() error {
		return locktest.ErrOf(c.Locker.Lock(mine.Bind(c.ctx), "mine", holdfast.MaxHold(time.Hour)))
	})
	waiter := c.queue(c.Locker, "mine")
	failed("mine", holdfast.ErrTooManyWaiters, 0, func() error { return c.Locker.Do(c.ctx, "mine", unreachable(c.T)) })
	c.unlock(locktest.Next(c.T, mine, waiter))
	c.unlock(their)
	if c.Kind.Virtual { // elsewhere an answer may be late on a slow machine
		require.Empty(c.T, of[holdfast.OutageBeganEvent](s))
	}
	c.away()
	defer c.Proxy.Refuse(false)
	locktest.Await(c.T, func() bool { // connections may be found dead only now
		var err error
		failed("k", nil, 0, func() error { err = try("k")(); return err })
		return err != nil && strings.Contains(err.Error(), holdfast.ErrUnavailable.Error())
	})
	_ = c.Locker.Close()                                 // an attempt of unknown outcome may not be undone yet
	require.ErrorIs(c.T, try("k")(), holdfast.ErrClosed) // nothing is told any more
	require.Len(c.T, of[holdfast.FailedEvent](s), n)
	require.Len(c.T, of[holdfast.AcquiredEvent](s), 2)
	require.Len(c.T, of[holdfast.ReleasedEvent](s), 2)
}

// A caller that leaves has nothing, and does not show that Redis is away.
func observeGaveUp(c *harness) {
	s := c.observed(defaults)
	held, letGo := c.hold(c.Proxy.OnReply, "acquire")
	ctx, cancel := context.WithCancel(c.ctx)
	call := locktest.GoLock(c.Locker, ctx, "k")
	locktest.Within(c.T, held)
	cancel()
	err := locktest.Within(c.T, call).Err
	require.ErrorIs(c.T, err, context.Canceled)
	letGo()
	c.Tidy("k")
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
	require.Equal(c.T, []string{"failed k", "acquired k by call", "released k"}, c.told(s))
	require.Equal(c.T, err, of[holdfast.FailedEvent](s)[0].Err)
}

// A loss is told once, be it found at a renewal, at Unlock, or by the cap.
func observeLost(c *harness) {
	s := c.observed(locktest.Options{Lease: 30 * time.Second})
	c.Other = c.Kind.Open(c.T, c.Server.Client(c.T), locktest.Options{Lease: 30 * time.Second})
	n := 0
	lost := func(l *holdfast.Lease) {
		c.T.Helper()
		n++
		e := await[holdfast.LostEvent](c, s, n)[n-1]
		require.Equal(c.T, l.Key(), e.Key)
		require.Positive(c.T, e.Held)
		require.Equal(c.T, l.Err(), e.Err)
		require.ErrorIs(c.T, e.Err, holdfast.ErrLost)
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	}
	l := locktest.Lock(c.T, c.Locker, c.ctx, "at a renewal")
	c.force(c.Other, l.Key())
	lost(l)
	lost(locktest.Lock(c.T, c.Locker, c.ctx, "capped", holdfast.MaxHold(100*time.Millisecond)))
	l = locktest.Lock(c.T, c.Locker, c.ctx, "at Unlock")
	c.force(c.Other, l.Key())
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	require.Equal(c.T, []string{
		"acquired at a renewal by call", "lost at a renewal", "acquired capped by call", "lost capped",
		"acquired at Unlock by call", "lost at Unlock",
	}, c.told(s, "holdfast", "waiters")) // nodes of a busy machine may miss a first attempt
}

func observeRenewed(c *harness) {
	const lease, late = 30 * time.Second, 1500 * time.Millisecond // no reply takes so long that the renewal is repeated
	s := c.observed(locktest.Options{Lease: lease})
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	fixed := locktest.Lock(c.T, c.Locker, c.ctx, "fixed", holdfast.FixedLease(locktest.Long))
	confirmed := func(n int) (all []holdfast.RenewedEvent) {
		locktest.Await(c.T, func() bool {
			all = slices.DeleteFunc(of[holdfast.RenewedEvent](s), func(e holdfast.RenewedEvent) bool { return e.Err != nil })
			return len(all) >= n
		})
		return all
	}
	for _, e := range confirmed(1) {
		require.Equal(c.T, "k", e.Key)
		require.Less(c.T, e.Late, lease)
	}
	c.Proxy.SetDelay(0, late)
	n := len(confirmed(0))
	slow := confirmed(n + 2)[n+1] // the one before may have been under way
	require.GreaterOrEqual(c.T, slow.Late, late-lease/30)
	require.Less(c.T, slow.Late, lease)
	c.Proxy.SetDelay(0, 0)
	c.unlock(l)
	c.unlock(fixed)
	require.Len(c.T, c.told(s, "holdfast"), 4)
}

// Close releases what is held.
func observeClose(c *harness) {
	s := c.observed(defaults)
	outer := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	locktest.Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
	waiter := c.queue(c.Locker, "k")
	time.Sleep(pause)
	told := c.told(s, "failed") // perhaps too late to be told
	require.ErrorIs(c.T, locktest.Within(c.T, waiter).Err, holdfast.ErrClosed)
	require.Equal(c.T, []string{
		"acquired k by call", "acquired k by re-entry", "waiters k 1", "waiters k 0", "released k", "released k",
	}, told)
	for _, r := range of[holdfast.ReleasedEvent](s) {
		require.ErrorIs(c.T, r.Err, holdfast.ErrClosed)
		require.GreaterOrEqual(c.T, r.Held, pause)
	}
	require.ErrorIs(c.T, outer.Unlock(c.ctx), holdfast.ErrClosed)
}

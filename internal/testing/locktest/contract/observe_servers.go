package contract

import (
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A panic, or the end of the goroutine, is logged once, and later events are told.
func observePanic(c *harness) {
	for want, end := range map[string]func(){"panic=canary": func() { panic("canary") }, "runtime.Goexit": runtime.Goexit} {
		var logs redistest.Log
		var called atomic.Int64
		c.Locker = c.Kind.Open(c.T, c.Client, locktest.Options{
			Logger: slog.New(slog.NewTextHandler(&logs, nil)),
			Observer: &holdfast.Observer{
				Acquired: func(holdfast.AcquiredEvent) { called.Add(1); end() },
				Released: func(holdfast.ReleasedEvent) { called.Add(1); end() },
			},
		})
		for range 3 {
			c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
		}
		require.NoError(c.T, c.Locker.Close())
		require.EqualValues(c.T, 6, called.Load())
		require.Equal(c.T, 1, strings.Count(logs.String(), "observer panicked"), logs.String())
		require.Contains(c.T, logs.String(), want)
	}
}

// An observer that never returns holds up neither locks nor Close; what it misses is counted.
func observeBlocked(c *harness) {
	const calls = 6000
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	var s seen
	o := s.observer()
	told := o.Acquired
	o.Acquired = func(e holdfast.AcquiredEvent) {
		told(e)
		loop.Poke(entered)
		<-leave
	}
	c.Locker = locktest.Must(c.Kind.New(c.Client, locktest.Options{Observer: o, Lease: locktest.Long}))(c.T) // whose many errors nobody looks through
	c.T.Cleanup(func() { _ = c.Locker.Close() })
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	locktest.Within(c.T, entered)
	over := locktest.Over(c.ctx)
	for range calls { // without Redis
		if _, err := c.Locker.TryLock(over, "k"); err == nil {
			require.FailNow(c.T, "acquired")
		}
	}
	c.unlock(l)
	close(leave)
	d := await[holdfast.DroppedEvent](c, &s, 1)[0]
	require.Equal(c.T, holdfast.DroppedEvent{Failed: d.Failed, Released: 1}, d)
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
	require.NoError(c.T, c.Locker.Close())
	require.Equal(c.T, calls, len(of[holdfast.FailedEvent](&s))+d.Failed)
	require.Len(c.T, of[holdfast.AcquiredEvent](&s), 2)
	require.Len(c.T, of[holdfast.ReleasedEvent](&s), 1)

	leave = make(chan struct{})
	c.Locker = c.Kind.Open(c.T, c.Client, locktest.Options{Observer: o})
	locktest.Lock(c.T, c.Locker, c.ctx, "k")
	locktest.Within(c.T, entered)
	closed := locktest.Go(c.Locker.Close)
	require.NoError(c.T, locktest.Within(c.T, closed))
	c.free("k")
	require.Len(c.T, of[holdfast.ReleasedEvent](&s), 1)
	close(leave) // the goroutine ends now, and tells nothing more
}

// An observer may use its locker, and close it.
func observeLocks(c *harness) {
	var s seen
	o := s.observer()
	told, first := o.Acquired, true
	telling, closed := &locktest.TellingContext{Context: c.ctx, Waiting: make(chan struct{})}, make(chan error, 2)
	o.Acquired = func(e holdfast.AcquiredEvent) {
		told(e)
		if !first {
			return
		}
		first = false
		l, err := c.Locker.Lock(telling, e.Key) // waits for the one that it is told of
		if err == nil {
			err = l.Unlock(c.ctx)
		}
		closed <- err
		closed <- c.Locker.Close()
	}
	c.Locker = c.Kind.Open(c.T, c.Client, locktest.Options{Observer: o})
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	locktest.Within(c.T, telling.Waiting)
	c.unlock(l)
	require.NoError(c.T, locktest.Within(c.T, closed))
	require.NoError(c.T, locktest.Within(c.T, closed))
}

// The server stands still while a call waits.
func observeOutage(c *harness) {
	s := c.observed(locktest.Options{Lease: 30 * time.Second})
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
	c.Server.Pause()
	began := time.Now()
	waits := []<-chan locktest.Acquired{locktest.GoLock(c.Locker, c.ctx, "k"), locktest.GoLock(c.Locker, c.ctx, "another")}
	await[holdfast.OutageBeganEvent](c, s, 1)
	if !c.Kind.Cluster { // where another master may take over by now
		require.Empty(c.T, of[holdfast.OutageEndedEvent](s))
	}
	c.Server.Resume()
	for _, w := range waits {
		c.unlock(locktest.Got(c.T, w))
	}
	c.told(s)
	outage(c, s, time.Since(began))
}

// outage requires one outage, which has ended.
func outage(c *harness, s *seen, atMost time.Duration) {
	c.T.Helper()
	b, e := of[holdfast.OutageBeganEvent](s), of[holdfast.OutageEndedEvent](s)
	require.Len(c.T, b, 1)
	require.Len(c.T, e, 1)
	require.Error(c.T, b[0].Err)
	require.Equal(c.T, b[0].Server, e[0].Server)
	require.Equal(c.T, c.Kind.Cluster, b[0].Server != "")
	require.Positive(c.T, e[0].Lasted)
	require.Less(c.T, e[0].Lasted, atMost)
}

// Renewals show an outage while a lock is held and no call is made.
func observeOutageHeld(c *harness) {
	s := c.observed(locktest.Options{Lease: 30 * time.Second})
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	_, letGo := c.hold(c.Proxy.OnRequest, "renew")
	began := time.Now()
	await[holdfast.OutageBeganEvent](c, s, 1)
	failed := await[holdfast.RenewedEvent](c, s, 1)[0]
	require.Equal(c.T, "k", failed.Key)
	require.ErrorIs(c.T, failed.Err, holdfast.ErrUnknown)
	require.Positive(c.T, failed.Late)
	letGo()
	await[holdfast.OutageEndedEvent](c, s, 1)
	locktest.Await(c.T, func() bool {
		return slices.ContainsFunc(of[holdfast.RenewedEvent](s), func(e holdfast.RenewedEvent) bool { return e.Err == nil })
	})
	c.unlock(l)
	require.Equal(c.T, []string{"acquired k by call", "released k"}, c.told(s, "holdfast"))
	outage(c, s, time.Since(began))
}

// A nested call shows an outage while nothing is renewed.
func observeOutageNested(c *harness) {
	s := c.observed(locktest.Options{Lease: 3 * time.Second})
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(time.Minute))
	c.Server.Pause()
	began := time.Now()
	nested := locktest.GoLock(c.Locker, l.Bind(c.ctx), "k")
	await[holdfast.OutageBeganEvent](c, s, 1)
	c.Server.Resume()
	c.unlock(locktest.Got(c.T, nested))
	c.unlock(l)
	c.told(s)
	outage(c, s, time.Since(began))
}

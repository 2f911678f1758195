package contract

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// G1: one holder at a time. G4: each waiter gets on.
var progressCases = []testCase{
	{"G1_OneHolderAtATime", ofOneHolder, defaults, g1OneHolder},
	{"G4_CrashedHolderFreesTheKey", servers | ofLocks, defaults, g4Crashed},
	{"G4_SubscribesThenTriesAgain", servers | ofOneHolder, locktest.Options{Lease: locktest.Long}, g4SubscribesFirst},
	{"G4_LooksAgainAfterAReconnect", servers | ofOneHolder, locktest.Options{Lease: locktest.Long}, g4Reconnect},
	{"G4_ListenersThatDoNothingDelayNobody", servers, locktest.Options{Lease: locktest.Long}, g4Idle},
	{"G4_AGrantToOneWhoLeavesGoesOn", ofOneHolder, locktest.Options{Lease: locktest.Long, Handover: &longTenure}, g4Leaves},
}

func g1OneHolder(c *harness) {
	var n, inside int // guarded by the lock under test, as the race detector checks
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for i := range cap(errs) {
		l := c.Locker
		if i%2 == 0 {
			l = c.Other
		}
		all.Go(func() {
			for range 10 {
				if err := l.Do(c.ctx, "k", func(context.Context) error {
					if inside++; inside != 1 {
						return fmt.Errorf("%d inside", inside)
					}
					time.Sleep(time.Millisecond) // in virtual time, sections that take none do not meet
					n++
					inside--
					return nil
				}); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	require.Empty(c.T, errs)
	require.Equal(c.T, 80, n)
	c.Tidy("k")
}

// No message says that the key of a crashed holder is free.
func g4Crashed(c *harness) {
	c.Kind.Give(c.T, c.Server, c.Name("k"), locktest.Java, "1")
	c.Server.Do(c.T, "PEXPIRE", c.Name("k"), "300")
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
}

// A release after the refused attempt and before the subscription is not missed.
func g4SubscribesFirst(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	held, letGo := c.hold(c.Proxy.OnRequest, "subscribe")
	done := locktest.GoLock(c.Locker, c.ctx, "k")
	locktest.Within(c.T, held)
	c.unlock(their)
	letGo()
	c.unlock(locktest.Got(c.T, done))
}

func g4Reconnect(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	done := locktest.GoLock(c.Locker, c.ctx, "k")
	locktest.Await(c.T, func() bool { return len(c.noted()) >= 3 })    // the second attempt is sent,
	require.NoError(c.T, locktest.ErrOf(c.Locker.Inspect(c.ctx, "k"))) // and answered
	c.away()
	c.unlock(their)
	c.Proxy.Refuse(false)
	c.unlock(locktest.Got(c.T, done))
}

// A process lets others go first, but they need not come.
func g4Idle(c *harness) {
	listener, stop := c.Server.Client(c.T).Dedicate()
	defer stop()
	require.NoError(c.T, listener.Do(c.ctx, listener.B().Subscribe().Channel(c.Kind.Channel(c.Name("k"))).Build()).Error())
	holder := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	waits := c.queues(4, "k", holdfast.MaxHold(time.Hour)) // that get nothing by handover
	c.unlock(c.serve(holder, waits, nil))
}

// The grant and the end of two waits race; a waiter that stays must get the lock.
func g4Leaves(c *harness) {
	holder := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	for i := range 300 {
		c.ctx = locktest.Bounded(c.T) // for each round
		second, last := c.Locker, c.Locker
		if i%20 == 0 {
			second, last = c.Other, c.Other
		}
		ctx, cancel := context.WithCancel(c.ctx)
		going := []<-chan locktest.Acquired{c.queueWith(ctx, c.Locker, "k"), c.queueWith(ctx, second, "k")}
		staying := c.queue(last, "k")
		if i%20 == 1 { // the holder is c.Other's
			c.AwaitWaiters("k", 1)
		}
		released := locktest.Go(func() error { return holder.Unlock(c.ctx) })
		cancel()
		for _, w := range going {
			if a := <-w; a.Err == nil {
				c.unlock(a.Lease)
			} else {
				require.ErrorIs(c.T, a.Err, context.Canceled)
			}
		}
		require.NoError(c.T, <-released)
		holder = locktest.Got(c.T, staying)
	}
	c.unlock(holder)
	c.Tidy("k")
}

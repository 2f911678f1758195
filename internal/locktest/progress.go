package locktest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// G1: one holder at a time. G4: whoever waits gets on.
var progressCases = []contractCase{
	{"G1_OneHolderAtATime", defaults, g1OneHolder},
	{"G4_CrashedHolderFreesTheKey", defaults, g4Crashed},
	{"G4_SubscribesThenTriesAgain", Options{Lease: long}, g4SubscribesFirst},
	{"G4_LooksAgainAfterAReconnect", Options{Lease: long}, g4Reconnect},
	{"G4_ListenersThatDoNothingDelayNobody", Options{Lease: long}, g4Idle},
	{"G4_AGrantToOneWhoLeavesGoesOn", Options{Lease: long, Handover: &longTenure}, g4Leaves},
}

func g1OneHolder(c *contractRig) {
	var n, inside int // guarded by the lock under test: the race detector looks, too
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for i := range cap(errs) {
		l := c.locker
		if i%2 == 0 {
			l = c.other
		}
		all.Go(func() {
			for range 10 {
				if err := l.Do(c.ctx, "k", func(context.Context) error {
					if inside++; inside != 1 {
						return fmt.Errorf("%d inside", inside)
					}
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
	require.Empty(c.t, errs)
	require.Equal(c.t, 80, n)
	c.tidy("k")
}

// Nobody tells that it is free.
func g4Crashed(c *contractRig) {
	c.server.Do(c.t, "HSET", "k", "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:1", "1")
	c.server.Do(c.t, "PEXPIRE", "k", "300")
	c.unlock(lock(c.t, c.locker, c.ctx, "k"))
}

// A release after the refused attempt and before the subscription is not
// missed.
func g4SubscribesFirst(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	hook, held := holding("subscribe")
	c.proxy.OnRequest(hook)
	done := lockAside(c.locker, c.ctx, "k")
	within(c.t, held)
	c.unlock(their)
	c.proxy.OnRequest(nil)
	c.proxy.Release()
	c.unlock(got(c.t, done))
}

func g4Reconnect(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	done := lockAside(c.locker, c.ctx, "k")
	await(c.t, func() bool { return len(c.noted()) >= 3 }) // the second attempt is sent,
	_, err := c.locker.Inspect(c.ctx, "k")                 // and answered
	require.NoError(c.t, err)
	c.away()
	c.unlock(their)
	c.proxy.Refuse(false)
	c.unlock(got(c.t, done))
}

// A process lets others go first, but they need not come.
func g4Idle(c *contractRig) {
	listener, stop := c.server.Client(c.t).Dedicate()
	defer stop()
	require.NoError(c.t, listener.Do(c.ctx, listener.B().Subscribe().Channel(scripts.Channel("k")).Build()).Error())
	holder := lock(c.t, c.locker, c.ctx, "k")
	var waits []<-chan acquired
	for range 4 { // that get nothing by hand-over
		waits = append(waits, c.queue(c.locker, "k", holdfast.MaxHold(time.Hour)))
	}
	for _, w := range waits {
		c.unlock(holder)
		holder = got(c.t, w)
	}
	c.unlock(holder)
}

// The grant and the end of the wait race; who stays must get the lock.
func g4Leaves(c *contractRig) {
	holder := lock(c.t, c.locker, c.ctx, "k")
	for range 300 {
		ctx, cancel := context.WithCancel(c.ctx)
		going, staying := c.queueWith(ctx, c.locker, "k"), c.queue(c.locker, "k")
		released := make(chan error, 1)
		go func() { released <- holder.Unlock(c.ctx) }()
		cancel()
		if a := <-going; a.err == nil {
			c.unlock(a.lease)
		} else {
			require.ErrorIs(c.t, a.err, context.Canceled)
		}
		require.NoError(c.t, <-released)
		holder = got(c.t, staying)
	}
	c.unlock(holder)
	c.tidy("k")
}

package locktest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/hall"
)

var handoverCases = []contractCase{
	{"Handover_IsInMemory", Options{Handover: &longTenure}, handoverInMemory},
	{"Handover_TakesFencesFromTheReserve", Options{Handover: &longTenure, Fencing: true}, handoverFences},
	{"Handover_TenureEnds", defaults, handoverTenure},
	{"Handover_Off", Options{Handover: &noHandover}, handoverOff},
	{"Handover_LikeToLike", Options{Handover: &longTenure}, handoverLikeToLike},
	{"Handover_OldEntriesDoNotTouchTheNextLease", Options{Handover: &longTenure}, handoverOldEntries},
	{"Handover_NotAfterANestedCallInDoubt", Options{Handover: &longTenure}, handoverTainted},
	{"Handover_NotAfterANestedCallThatWasInDoubt", Options{Handover: &longTenure}, handoverDoubt},
	{"Handover_LossEndsThePresentLease", Options{Handover: &longTenure}, handoverLoss},
}

var longTenure, noHandover = 20 * time.Second, time.Duration(0)

func handoverInMemory(c *contractRig) {
	holder := lock(c.t, c.locker, c.ctx, "k")
	owner, deadline := holder.Owner(), holder.Deadline()
	var waits []<-chan acquired
	for range 5 {
		waits = append(waits, c.queue(c.locker, "k"))
	}
	c.commands()
	for _, w := range waits {
		before := holder
		c.unlock(holder)
		c.ended(before, hall.ErrReleased)
		holder = got(c.t, w)
		c.lives(holder)
		require.Equal(c.t, owner, holder.Owner())
		require.Equal(c.t, deadline, holder.Deadline())
		require.Equal(c.t, 1, c.entries("k"))
		c.held(c.other, "k")
	}
	c.quiet()
	c.unlock(holder)
	require.Equal(c.t, []string{"release"}, c.commands())
	c.tidy("k")
}

// A hold that was taken while others wait reserves numbers for them.
func handoverFences(c *contractRig) {
	holder := lock(c.t, c.locker, c.ctx, "k")
	var waits []<-chan acquired
	for range 6 {
		waits = append(waits, c.queue(c.locker, "k"))
	}
	owners := map[string]bool{holder.Owner(): true}
	last := holder.Fence()
	for _, w := range waits {
		c.unlock(holder)
		holder = got(c.t, w)
		require.Greater(c.t, holder.Fence(), last)
		last = holder.Fence()
		owners[holder.Owner()] = true
	}
	require.Len(c.t, owners, 2)
	c.unlock(holder)
	next := lock(c.t, c.other, c.ctx, "k")
	require.Greater(c.t, next.Fence(), last)
	c.unlock(next)
}

// However many wait here, another process gets its turn.
func handoverTenure(c *contractRig) {
	stop := make(chan struct{})
	ends := make(chan error, 4)
	for range cap(ends) {
		go func() {
			for {
				select {
				case <-stop:
					ends <- nil
					return
				default:
				}
				if err := c.locker.Do(c.ctx, "k", func(context.Context) error { return nil }); err != nil {
					ends <- err
					return
				}
			}
		}()
	}
	for range 3 {
		c.unlock(lock(c.t, c.other, c.ctx, "k"))
	}
	close(stop)
	for range cap(ends) {
		require.NoError(c.t, <-ends)
	}
	c.tidy("k")
}

func handoverOff(c *contractRig) {
	holder := lock(c.t, c.locker, c.ctx, "k")
	waits := []<-chan acquired{c.queue(c.locker, "k"), c.queue(c.locker, "k")}
	for _, w := range waits {
		before := holder.Owner()
		c.unlock(holder)
		holder = got(c.t, w)
		require.NotEqual(c.t, before, holder.Owner())
	}
	c.unlock(holder)
	require.Equal(c.t, []string{"acquire", "release", "acquire", "release", "acquire", "release"}, c.commands())
}

// A lease with terms of its own is a hold of its own, and so is what follows it.
func handoverLikeToLike(c *contractRig) {
	for _, call := range []Call{{FixedLease: time.Hour}, {MaxHold: time.Hour}} {
		holder := lock(c.t, c.locker, c.ctx, "k")
		plain := c.queue(c.locker, "k")
		special := []<-chan acquired{c.queue(c.locker, "k", call), c.queue(c.locker, "k", call)}
		last := c.queue(c.locker, "k")
		same := []bool{true, false, false, false}
		for i, w := range append(append([]<-chan acquired{plain}, special...), last) {
			before := holder.Owner()
			c.unlock(holder)
			holder = got(c.t, w)
			require.Equal(c.t, same[i], holder.Owner() == before, "%v: %d", call, i)
			left := time.Duration(number(c.t, c.server, "PTTL", "k")) * time.Millisecond
			require.Equal(c.t, call.FixedLease != 0 && (i == 1 || i == 2), left > time.Minute, "%v: %d", call, i)
		}
		c.unlock(holder)
	}
	c.tidy("k")
}

func handoverOldEntries(c *contractRig) {
	outer := lock(c.t, c.locker, c.ctx, "k")
	inner := lock(c.t, c.locker, outer.Bind(c.ctx), "k")
	bound := context.WithoutCancel(outer.Bind(c.ctx))
	w := c.queue(c.locker, "k")
	c.unlock(inner)
	c.unlock(outer)
	next := got(c.t, w)
	require.Equal(c.t, outer.Owner(), next.Owner())
	require.ErrorIs(c.t, outer.Unlock(c.ctx), hall.ErrReleased)
	require.ErrorIs(c.t, inner.Unlock(c.ctx), hall.ErrReleased)
	_, err := c.locker.TryLock(bound, "k")
	require.ErrorIs(c.t, err, hall.ErrReleased)
	require.Equal(c.t, 1, c.entries("k"))
	c.lives(next)
	c.unlock(next)
}

// A nested call that may still arrive would count for the next lease.
func handoverTainted(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	hook, held := holding("recount")
	c.proxy.OnRequest(hook)
	ctx, cancel := context.WithCancel(l.Bind(c.ctx))
	done := lockAside(c.locker, ctx, "k")
	<-held
	w := c.queue(c.locker, "k")
	unlocked := make(chan error, 1)
	go func() { unlocked <- l.Unlock(c.ctx) }()
	<-l.Done()
	cancel()
	require.Error(c.t, (<-done).err)
	c.proxy.OnRequest(nil)
	c.proxy.Release()
	require.NoError(c.t, <-unlocked)
	next := got(c.t, w)
	require.NotEqual(c.t, l.Owner(), next.Owner())
	require.Equal(c.t, 1, c.entries("k"))
	c.unlock(next)
	c.free("k")
}

// That it has been undone since does not say that it will not arrive once more.
func handoverDoubt(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	c.swallow(1, "recount")
	_, err := c.locker.TryLock(l.Bind(c.ctx), "k")
	require.ErrorIs(c.t, err, hall.ErrUnknown)
	c.unlock(lock(c.t, c.locker, l.Bind(c.ctx), "k")) // comes after what undoes the last
	require.Equal(c.t, 1, c.entries("k"))
	w := c.queue(c.locker, "k")
	c.unlock(l)
	next := got(c.t, w)
	require.NotEqual(c.t, l.Owner(), next.Owner())
	c.unlock(next)
}

func handoverLoss(c *contractRig) {
	first := lock(c.t, c.locker, c.ctx, "k")
	second, third := c.queue(c.locker, "k"), c.queue(c.locker, "k")
	c.unlock(first)
	present := got(c.t, second)
	_, err := c.locker.ForceUnlock(c.ctx, "k")
	require.NoError(c.t, err)
	c.ended(present, hall.ErrLost)
	require.ErrorIs(c.t, first.Err(), hall.ErrReleased)
	next := got(c.t, third)
	require.NotEqual(c.t, first.Owner(), next.Owner())
	require.ErrorIs(c.t, present.Unlock(c.ctx), hall.ErrLost)
	c.lives(next)
	c.unlock(next)
}

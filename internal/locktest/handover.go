package locktest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var handoverCases = []contractCase{
	{"Handover_IsInMemory", tenured, handoverInMemory},
	{"Handover_TakesFencesFromTheReserve", Options{Handover: &longTenure, Fencing: true}, handoverFences},
	{"Handover_TenureEnds", defaults, handoverTenure},
	{"Handover_NotBeyondTheTenure", Options{Handover: &shortTenure}, handoverTenureOver},
	{"Handover_Off", Options{Handover: &noHandover}, handoverOff},
	{"Handover_LikeToLike", tenured, handoverLikeToLike},
	{"Handover_OldEntriesDoNotTouchTheNextLease", tenured, handoverOldEntries},
	{"Handover_NotAfterANestedCallInDoubt", tenured, handoverTainted},
	{"Handover_NotAfterANestedCallThatWasInDoubt", tenured, handoverDoubt},
	{"Handover_LossEndsThePresentLease", tenured, handoverLoss},
}

var longTenure, shortTenure, noHandover = 20 * time.Second, 50 * time.Millisecond, time.Duration(0)

// tenured are locks that are handed over for as long as a case lasts, and not
// renewed meanwhile.
var tenured = Options{Handover: &longTenure, FirstLease: 20 * time.Second}

// crew is a holder of key, and so many waiters behind it, to which its hold may be
// handed over one after the other, and then waiters with these terms. On a fair
// lock kind such a hold has been granted by the queue, with those who follow.
func (c *contractRig) crew(key string, n int, then ...[]holdfast.LockOption) (holder *holdfast.Lease, waits []<-chan acquired) {
	c.t.Helper()
	holder = lock(c.t, c.locker, c.ctx, key)
	if c.kind.Fair {
		before, leader := holder, c.inQueue(c.locker, key)
		defer func() {
			c.answered(key) // else they are no members of a run
			c.unlock(before)
			holder = got(c.t, leader)
		}()
	}
	for range n {
		waits = append(waits, c.inQueue(c.locker, key))
	}
	for _, terms := range then {
		waits = append(waits, c.inQueue(c.locker, key, terms...))
	}
	return holder, waits
}

func handoverInMemory(c *contractRig) {
	holder, waits := c.crew("k", 5)
	owner, deadline := holder.Owner(), holder.Deadline()
	c.commands()
	for _, w := range waits {
		before := holder
		c.unlock(holder)
		c.ended(before, holdfast.ErrReleased)
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

// Who comes after the tenure has a hold of its own.
func handoverTenureOver(c *contractRig) {
	holder, waits := c.crew("k", 2)
	time.Sleep(shortTenure)
	c.unlock(holder)
	next := got(c.t, waits[0])
	require.NotEqual(c.t, holder.Owner(), next.Owner())
	c.unlock(next)
	c.unlock(got(c.t, waits[1]))
	c.tidy("k")
}

func handoverOff(c *contractRig) {
	holder := lock(c.t, c.locker, c.ctx, "k")
	waits := []<-chan acquired{c.inQueue(c.locker, "k"), c.inQueue(c.locker, "k")}
	for _, w := range waits {
		before := holder.Owner()
		c.unlock(holder)
		holder = got(c.t, w)
		require.NotEqual(c.t, before, holder.Owner())
	}
	c.unlock(holder)
	want := []string{"acquire", "release", "acquire", "release", "acquire", "release"}
	if c.kind.Fair {
		want = []string{"acquire", "subscribe", "enter", "enter", "release", "release", "release"}
	}
	c.sentInOrder(want, c.commands())
}

// A lease with terms of its own is a hold of its own, and so is what follows it.
func handoverLikeToLike(c *contractRig) {
	for fixed, call := range map[bool]holdfast.LockOption{true: holdfast.FixedLease(time.Hour), false: holdfast.MaxHold(time.Hour)} {
		with := []holdfast.LockOption{call}
		holder, waits := c.crew("k", 1, with, with, nil, nil)
		same := []bool{true, false, false, false, true}
		for i, w := range waits {
			before := holder.Owner()
			c.unlock(holder)
			holder = got(c.t, w)
			require.Equal(c.t, same[i], holder.Owner() == before, "fixed %t: %d", fixed, i)
			left := time.Duration(number(c.t, c.server, "PTTL", "k")) * time.Millisecond
			require.Equal(c.t, fixed && (i == 1 || i == 2), left > time.Minute, "fixed %t: %d", fixed, i)
		}
		c.unlock(holder)
	}
	c.tidy("k")
}

func handoverOldEntries(c *contractRig) {
	outer, waits := c.crew("k", 1)
	inner := lock(c.t, c.locker, outer.Bind(c.ctx), "k")
	bound := context.WithoutCancel(outer.Bind(c.ctx))
	c.unlock(inner)
	c.unlock(outer)
	next := got(c.t, waits[0])
	require.Equal(c.t, outer.Owner(), next.Owner())
	require.ErrorIs(c.t, outer.Unlock(c.ctx), holdfast.ErrReleased)
	require.ErrorIs(c.t, inner.Unlock(c.ctx), holdfast.ErrReleased)
	_, err := c.locker.TryLock(bound, "k")
	require.ErrorIs(c.t, err, holdfast.ErrReleased)
	require.Equal(c.t, 1, c.entries("k"))
	c.lives(next)
	c.unlock(next)
}

// A nested call that may still arrive would count for the next lease.
func handoverTainted(c *contractRig) {
	l, waits := c.crew("k", 1)
	hook, held := holding("recount")
	c.proxy.OnRequest(hook)
	ctx, cancel := context.WithCancel(l.Bind(c.ctx))
	done := lockAside(c.locker, ctx, "k")
	within(c.t, held)
	unlocked := make(chan error, 1)
	go func() { unlocked <- l.Unlock(c.ctx) }()
	<-l.Done()
	cancel()
	require.Error(c.t, (<-done).err)
	c.proxy.OnRequest(nil)
	c.proxy.Release()
	require.NoError(c.t, <-unlocked)
	next := got(c.t, waits[0])
	require.NotEqual(c.t, l.Owner(), next.Owner())
	require.Equal(c.t, 1, c.entries("k"))
	c.unlock(next)
	c.free("k")
}

// That it has been undone since does not say that it will not arrive once more.
func handoverDoubt(c *contractRig) {
	l, waits := c.crew("k", 1)
	c.swallow(1, "recount")
	_, err := c.locker.TryLock(l.Bind(c.ctx), "k")
	require.ErrorIs(c.t, err, holdfast.ErrUnknown)
	c.unlock(lock(c.t, c.locker, l.Bind(c.ctx), "k")) // comes after what undoes the last
	require.Equal(c.t, 1, c.entries("k"))
	c.unlock(l)
	next := got(c.t, waits[0])
	require.NotEqual(c.t, l.Owner(), next.Owner())
	c.unlock(next)
}

func handoverLoss(c *contractRig) {
	first, waits := c.crew("k", 2)
	c.unlock(first)
	present := got(c.t, waits[0])
	require.Equal(c.t, first.Owner(), present.Owner())
	_, err := c.locker.ForceUnlock(c.ctx, "k")
	require.NoError(c.t, err)
	c.ended(present, holdfast.ErrLost)
	require.ErrorIs(c.t, first.Err(), holdfast.ErrReleased)
	next := got(c.t, waits[1])
	require.NotEqual(c.t, first.Owner(), next.Owner())
	require.ErrorIs(c.t, present.Unlock(c.ctx), holdfast.ErrLost)
	c.lives(next)
	c.unlock(next)
}

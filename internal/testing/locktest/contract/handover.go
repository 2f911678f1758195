package contract

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

var handoverCases = []testCase{
	{"Handover_IsInMemory", servers | ofOneHolder | ofLocks, tenured, handoverInMemory},
	{"Handover_TakesFencesFromTheReserve", servers | ofOneHolder | ofLocks, locktest.Options{Handover: &longTenure, Fencing: true}, handoverFences},
	{"Handover_TenureEnds", anywhere, defaults, handoverTenure},
	{"Handover_NotBeyondTheTenure", ofOneHolder, locktest.Options{Handover: &shortTenure}, handoverTenureOver},
	{"Handover_Off", servers | ofOneHolder | ofLocks, locktest.Options{Handover: &noHandover, Lease: locktest.Long, WaiterTTL: locktest.Long, GrantLease: locktest.Long}, handoverOff},
	{"Handover_LikeToLike", servers | ofOneHolder, tenured, handoverLikeToLike},
	{"Handover_OldEntriesDoNotTouchTheNextLease", servers | ofOneHolder, tenured, handoverOldEntries},
	{"Handover_NotAfterANestedCallInDoubt", servers | ofOneHolder, tenured, handoverNotInDoubt},
	{"Handover_NotAfterANestedCallThatWasInDoubt", servers | ofOneHolder, tenured, handoverDoubt},
	{"Handover_LossEndsThePresentLease", servers | ofOneHolder, tenured, handoverLoss},
}

var longTenure, shortTenure, noHandover = 20 * time.Second, 50 * time.Millisecond, time.Duration(0)

// tenured are locks that are handed over for as long as a case lasts, and not
// renewed meanwhile.
var tenured = locktest.Options{Handover: &longTenure, Lease: locktest.Long, WaiterTTL: locktest.Long, GrantLease: locktest.Long}

// lineUp is a holder of key and several waiters behind it, which its hold may serve in
// turn, and then waiters with these terms. On a fair lock kind the queue has granted such a
// hold, together with its run.
func (c *harness) lineUp(key string, n int, then ...[]holdfast.LockOption) (holder *holdfast.Lease, waits []<-chan locktest.Acquired) {
	c.T.Helper()
	holder = locktest.Lock(c.T, c.Locker, c.ctx, key)
	if c.Kind.Fair {
		before, leader := holder, c.inQueue(c.Locker, key)
		defer func() {
			c.Answered(key) // else they are no members of a run
			holder = locktest.Next(c.T, before, leader)
		}()
	}
	for range n {
		waits = append(waits, c.inQueue(c.Locker, key))
	}
	for _, terms := range then {
		waits = append(waits, c.inQueue(c.Locker, key, terms...))
	}
	return holder, waits
}

func handoverInMemory(c *harness) {
	holder, waits := c.lineUp("k", 5)
	owner, deadline := holder.Owner(), holder.Deadline()
	c.commands()
	holder = c.serve(holder, waits, func(_ int, before, next *holdfast.Lease) {
		c.ended(before, holdfast.ErrReleased)
		c.lives(next)
		require.Equal(c.T, owner, next.Owner())
		require.Equal(c.T, deadline, next.Deadline())
		require.Equal(c.T, 1, c.Entries("k"))
		c.held(c.Other, "k")
	})
	c.quiet()
	c.unlock(holder)
	require.Equal(c.T, []string{"release"}, c.commands())
	c.Tidy("k")
}

// A hold that was taken while others wait reserves numbers for them.
func handoverFences(c *harness) {
	holder := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	waits := c.queues(6, "k")
	owners := map[string]bool{holder.Owner(): true}
	last := holder.Fence()
	for _, w := range waits {
		time.Sleep(time.Millisecond) // there is one for each microsecond
		holder = locktest.Next(c.T, holder, w)
		require.Greater(c.T, holder.Fence(), last)
		last = holder.Fence()
		owners[holder.Owner()] = true
	}
	require.Len(c.T, owners, 2)
	c.unlock(holder)
	next := locktest.Lock(c.T, c.Other, c.ctx, "k")
	require.Greater(c.T, next.Fence(), last)
	c.unlock(next)
}

// However many waiters there are here, another process gets its turn.
func handoverTenure(c *harness) {
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
				if err := c.Locker.Do(c.ctx, "k", func(context.Context) error { time.Sleep(time.Millisecond); return nil }); err != nil {
					ends <- err
					return
				}
			}
		}()
	}
	for range 3 {
		c.unlock(locktest.Lock(c.T, c.Other, c.ctx, "k"))
	}
	close(stop)
	for range cap(ends) {
		require.NoError(c.T, <-ends)
	}
	c.Tidy("k")
}

// A waiter that comes after the tenure has a hold of its own.
func handoverTenureOver(c *harness) {
	holder, waits := c.lineUp("k", 2)
	time.Sleep(shortTenure) // it is over
	next := locktest.Next(c.T, holder, waits[0])
	require.NotEqual(c.T, holder.Owner(), next.Owner())
	c.unlock(locktest.Next(c.T, next, waits[1]))
	c.Tidy("k")
}

func handoverOff(c *harness) {
	holder := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	waits := []<-chan locktest.Acquired{c.inQueue(c.Locker, "k"), c.inQueue(c.Locker, "k")}
	c.unlock(c.serve(holder, waits, func(_ int, before, next *holdfast.Lease) {
		require.NotEqual(c.T, before.Owner(), next.Owner())
	}))
	want := []string{"acquire", "release", "acquire", "release", "acquire", "release"}
	if c.Kind.Fair {
		want = []string{"acquire", "subscribe", "enter", "enter", "release", "release", "release"}
	}
	c.sentInOrder(want, c.commands())
}

// A lease with terms of its own is a hold of its own, and so is what follows it.
func handoverLikeToLike(c *harness) {
	for terms, call := range map[string]holdfast.LockOption{
		"fixed": holdfast.FixedLease(time.Hour), "capped": holdfast.MaxHold(time.Hour), "labelled": holdfast.Label("l"),
	} {
		with := []holdfast.LockOption{call}
		holder, waits := c.lineUp("k", 1, with, with, nil, nil)
		same := []bool{true, false, false, false, true}
		c.unlock(c.serve(holder, waits, func(i int, before, next *holdfast.Lease) {
			if c.Kind.Virtual || !same[i] { // a slow machine may enter twice, and then hands nothing on
				require.Equal(c.T, same[i], next.Owner() == before.Owner(), "%s: %d", terms, i)
			}
			own := i == 1 || i == 2
			require.Equal(c.T, own && terms == "fixed", c.Remaining("k") > locktest.Long, "%s: %d", terms, i)
			s := locktest.Must(c.Other.Inspect(c.ctx, "k"))(c.T)
			require.Equal(c.T, own && terms == "labelled", s.Label == "l", "%s: %d", terms, i)
		}))
	}
	c.Tidy("k")
}

func handoverOldEntries(c *harness) {
	outer, waits := c.lineUp("k", 1)
	inner := locktest.Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
	bound := context.WithoutCancel(outer.Bind(c.ctx))
	c.unlock(inner)
	next := locktest.Next(c.T, outer, waits[0])
	require.Equal(c.T, outer.Owner(), next.Owner())
	require.ErrorIs(c.T, outer.Unlock(c.ctx), holdfast.ErrReleased)
	require.ErrorIs(c.T, inner.Unlock(c.ctx), holdfast.ErrReleased)
	require.ErrorIs(c.T, locktest.ErrOf(c.Locker.TryLock(bound, "k")), holdfast.ErrReleased)
	require.Equal(c.T, 1, c.Entries("k"))
	c.lives(next)
	c.unlock(next)
}

// A nested call that may still arrive would count for the next lease.
func handoverNotInDoubt(c *harness) {
	l, waits := c.lineUp("k", 1)
	held, letGo := c.hold(c.Proxy.OnRequest, "set_entries")
	ctx, cancel := context.WithCancel(l.Bind(c.ctx))
	done := locktest.GoLock(c.Locker, ctx, "k")
	locktest.Within(c.T, held)
	unlocked := locktest.Go(func() error { return l.Unlock(c.ctx) })
	<-l.Done()
	cancel()
	require.Error(c.T, (<-done).Err)
	letGo()
	require.NoError(c.T, <-unlocked)
	next := locktest.Got(c.T, waits[0])
	require.NotEqual(c.T, l.Owner(), next.Owner())
	require.Equal(c.T, 1, c.Entries("k"))
	c.unlock(next)
	c.free("k")
}

// An undone call may still arrive once more.
func handoverDoubt(c *harness) {
	l, waits := c.lineUp("k", 1)
	c.swallow(1, "set_entries")
	require.ErrorIs(c.T, locktest.ErrOf(c.Locker.TryLock(l.Bind(c.ctx), "k")), holdfast.ErrUnknown)
	c.lives(l)
	locktest.Await(c.T, func() bool { return c.Entries("k") == 1 }, "it is not undone")
	c.unlock(locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k")) // comes after what undoes the last
	require.Equal(c.T, 1, c.Entries("k"))
	next := locktest.Next(c.T, l, waits[0])
	require.NotEqual(c.T, l.Owner(), next.Owner())
	c.unlock(next)
}

func handoverLoss(c *harness) {
	first, waits := c.lineUp("k", 2)
	present := locktest.Next(c.T, first, waits[0])
	require.Equal(c.T, first.Owner(), present.Owner())
	c.force(c.Locker, "k")
	c.ended(present, holdfast.ErrLost)
	require.ErrorIs(c.T, first.Err(), holdfast.ErrReleased)
	next := locktest.Got(c.T, waits[1])
	require.NotEqual(c.T, first.Owner(), next.Owner())
	require.ErrorIs(c.T, present.Unlock(c.ctx), holdfast.ErrLost)
	c.lives(next)
	c.unlock(next)
}

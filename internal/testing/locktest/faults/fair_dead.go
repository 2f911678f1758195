package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() {
	locktest.RegisterChild("waiters", waitersChild)
	register("F3_WaitersKilledAtHeadMiddleAndTail", testWaitersKilled, fairOnly|realServers)
	register("F3_TwentyClientsKilledTogether", testTwentyKilled, fairOnly|realServers)
	register("F3_GrantedAndKilled", testGrantedAndKilled, fairOnly|realServers)
	register("F3_WaitersStoodStill", testWaitersStoodStill, fairOnly|realServers)
}

// waitersChild waits for the key k by several clients, each with several waiters,
// says which one is served, and unlocks when it hears a line.
// Args: the address of Redis, the number of clients, of waiters of each, the time
// in nanoseconds after which a silent client is dead.
func waitersChild(k locktest.Kind, p *locktest.Parent) error {
	var addr string
	var clients, each int
	var waiterTTL time.Duration
	if _, err := fmt.Sscan(strings.Join(p.Args, " "), &addr, &clients, &each, &waiterTTL); err != nil {
		return err
	}
	for i := range clients {
		client, err := p.Client(addr)
		if err != nil {
			return err
		}
		locker, err := k.New(client, locktest.Options{Lease: locktest.Long, WaiterTTL: waiterTTL, GrantLease: waiterTTL})
		if err != nil {
			return err
		}
		for range each {
			go func() {
				l, err := locker.Lock(context.Background(), "k")
				if err != nil {
					p.Say("failed %v", err)
					return
				}
				p.Say("served %d", i)
				p.Hear()
				p.Say("unlocked %s", errorName(l.Unlock(context.Background())))
			}()
		}
	}
	select {} // until it is killed
}

// deadRig is a key that is held, and a queue behind it.
type deadRig struct {
	*harness
	holder *holdfast.Lease
}

// newDeadRig has a locker hold the key whose grants are for so long. The harness's lockers outlive all.
func newDeadRig(t *testing.T, k locktest.Kind, grant time.Duration) *deadRig {
	t.Helper()
	r := &deadRig{harness: newHarness(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: locktest.Long, GrantLease: locktest.Long})}
	holder := k.Open(t, r.Server.Client(t), locktest.Options{Lease: locktest.Long, WaiterTTL: grant, GrantLease: grant})
	r.holder = locktest.Lock(t, holder, locktest.Bounded(t), "k")
	return r
}

// length is that of the queue.
func (r *deadRig) length() int { return len(locktest.Queued(r.T, r.Server, "k")) }

// child has a process join the queue, whose clients are dead after so long a silence.
func (r *deadRig) child(clients, each int, waiterTTL time.Duration) *locktest.Child {
	r.T.Helper()
	want := r.length() + clients*each
	c := locktest.StartChild(r.T, "waiters", r.Server.Addr(), fmt.Sprint(clients), fmt.Sprint(each), fmt.Sprint(int64(waiterTTL)))
	locktest.Await(r.T, func() bool { return r.length() == want })
	return c
}

// mine has the harness's locker join the queue.
func (r *deadRig) mine() <-chan locktest.Acquired {
	r.T.Helper()
	return r.InQueue(locktest.Bounded(r.T), "k", r.length()+1)
}

// kill returns when Redis knows, too: only the harness's locker still listens to an inbox.
func (r *deadRig) kill(all ...*locktest.Child) {
	r.T.Helper()
	for _, c := range all {
		c.Kill()
	}
	locktest.Await(r.T, func() bool { return len(locktest.Channels(r.T, r.Server[0])) == 1 })
}

// next unlocks, and requires that this call has given the key to that waiter.
func (r *deadRig) next(l *holdfast.Lease, waiting <-chan locktest.Acquired) *holdfast.Lease {
	r.T.Helper()
	require.NoError(r.T, l.Unlock(locktest.Bounded(r.T)))
	owner := r.Owner("k")
	l = locktest.Got(r.T, waiting)
	require.Equal(r.T, owner, l.Owner(), "it cost more than the one call")
	return l
}

// No waiter is passed over, and the dead cost nothing, however many they are, as their messages
// have no receiver. By their heartbeats they would count as alive for a minute.
func testWaitersKilled(t *testing.T, k locktest.Kind) {
	r := newDeadRig(t, k, locktest.Long)
	head := r.child(20, 60, locktest.Long)
	first := r.mine()
	middle := r.child(1, 3, locktest.Long)
	second := r.mine()
	tail := r.child(1, 1, locktest.Long)
	r.kill(head, middle, tail)
	l := r.next(r.next(r.holder, first), second)
	third := r.mine() // behind the dead
	require.NoError(t, r.next(l, third).Unlock(locktest.Bounded(t)))
	require.Empty(t, r.Owner("k"))
	require.Equal(t, 1204, r.length(), "their places are kept while they may come back")
}

func testTwentyKilled(t *testing.T, k locktest.Kind) {
	const waiterTTL = time.Second
	r := newDeadRig(t, k, locktest.Long)
	dead := r.child(20, 1, waiterTTL)
	first := r.mine()
	r.kill(dead)
	l := r.next(r.holder, first)
	time.Sleep(waiterTTL) // until they count as dead
	second := r.mine()
	require.NoError(t, r.next(l, second).Unlock(locktest.Bounded(t)))
	r.Tidy("k") // they have left nothing
}

// A waiter dies after its grant, before it could use it: the key is free after the short
// grant lease.
func testGrantedAndKilled(t *testing.T, k locktest.Kind) {
	const grant = time.Second
	r := newDeadRig(t, k, grant)
	dead := r.child(1, 1, locktest.Long)
	next := r.mine()
	dead.Pause()
	began := time.Now()
	require.NoError(t, r.holder.Unlock(locktest.Bounded(t)))
	dead.Kill()
	l := locktest.Got(t, next) // after one grant lease, and a heartbeat; a lease takes longer
	require.GreaterOrEqual(t, time.Since(began), grant, "the dead was not granted the key")
	r.passesOn(l)
}

// A process that stands still is told and does not hear it. It costs one grant
// lease, however many of its waiters stand in the queue. When it goes on, it
// believes in nothing that it was told, and enters again at the tail.
func testWaitersStoodStill(t *testing.T, k locktest.Kind) {
	const many, waiterTTL = 20, 20 * time.Second
	r := newDeadRig(t, k, waiterTTL)
	still := r.child(1, many, waiterTTL)
	next := r.mine()
	inbox, told := locktest.InboxOf("k", locktest.Queued(t, r.Server, "k")[0]), 0
	stop := locktest.Real(r.Server[0]).Monitor(t, func(c redistest.Command) {
		if strings.HasSuffix(c.Words[0], "PUBLISH") && c.Words[1] == inbox {
			told++
		}
	})
	still.Pause()
	require.NoError(t, r.holder.Unlock(locktest.Bounded(t)))
	l := locktest.Got(t, next)
	stop()
	require.Equal(t, 1, told, "each costs a grant lease")
	last := locktest.GoLock(r.Other, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return r.length() == 1 })
	still.Resume()
	locktest.Await(t, func() bool { return r.length() == 1+many })
	order := locktest.Queued(t, r.Server, "k")
	require.Equal(t, l.Owner(), r.Owner("k"))

	l = locktest.Next(t, l, last)
	require.Equal(t, order[0], l.Owner())
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	for range 2 * many { // the next may say that it is served before the one before says how its Unlock went
		if word, rest := still.Next(); word == "served" {
			still.Say("go on")
		} else {
			require.Equal(t, "unlocked nil", word+" "+rest)
		}
	}
	r.Tidy("k")
}

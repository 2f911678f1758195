package contract

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// fairCases are the promises of fair locks only.
var fairCases = []testCase{
	{"Wait_CostsOneHeartbeatPerClient", servers, locktest.Options{Lease: locktest.Long, WaiterTTL: aliveFor, GrantLease: aliveFor}, fairWaitCosts},
	{"Wait_BusyKeyNeedsNoHeartbeats", servers, locktest.Options{Handover: &noHandover, WaiterTTL: 5 * time.Second}, fairBusy},
	{"G4_FoundThoughOthersEnter", servers, locktest.Options{Lease: locktest.Long, WaiterTTL: 2 * time.Second}, fairFoundAmongNew},
	{"G2_AGrantIsNotTrustedBeyondItsGrantLease", servers, locktest.Options{Lease: locktest.Long, WaiterTTL: 6 * time.Second, GrantLease: 6 * time.Second}, fairLateGrant},
	{"G1_AGrantOfAnotherKeyIsNotBelieved", servers, locktest.Options{Lease: locktest.Long, GrantLease: locktest.Long}, fairOtherKey},
	{"G1_FairGrantOvertakenByTheNext", servers, defaults, fairOvertaken},
	{"G8_TryLockDoesNotOvertake", servers, locktest.Options{Lease: locktest.Long}, fairTryLock},
	{"G8_AnotherClientsTurnEndsARun", servers, tenured, fairRunEnds},
	{"G8_GrantsFollowTheQueue", servers, locktest.Options{Lease: locktest.Long, WaiterTTL: locktest.Long, GrantLease: locktest.Long, Handover: &longTenure}, fairOrder},
	{"OnPlace", servers, oneByOne, onPlace},
	{"OnPlace_ConfirmedGrants", servers, locktest.Options{Handover: &noHandover, WaiterTTL: 20 * time.Second, GrantLease: 20 * time.Second, Lease: locktest.Long, Confirmed: true}, onPlace},
	{"OnPlace_PanicEndsTheCall", servers, defaults, onPlacePanics},
	{"Label_OfALaterHolder", servers, oneByOne, fairLaterHolder},
	{"Label_OfOurOwnHold", servers, locktest.Options{Handover: &noHandover, WaiterTTL: 3 * time.Second, Lease: locktest.Long, Label: "mine"}, fairOwnHold},
}

const aliveFor = 20 * time.Second

// The first waiter of a key subscribes, and each takes its place. From then on there is one
// heartbeat for all of them, five times in the time after which the client would count as
// dead.
func fairWaitCosts(c *harness) {
	const keys, perKey = 3, 5
	var their []*holdfast.Lease
	var waits []<-chan locktest.Acquired
	var want []string
	for i := range keys {
		key := fmt.Sprint("key", i)
		their = append(their, locktest.Lock(c.T, c.Other, c.ctx, key))
		waits = append(waits, c.inQueue(c.Locker, key))
		want = append(want, "acquire", "subscribe", "enter")
		for range perKey - 1 {
			waits = append(waits, c.inQueue(c.Locker, key))
			want = append(want, "enter")
		}
	}
	require.Equal(c.T, want, c.commands())
	calls := 2
	if c.Kind.Virtual {
		calls = 10
	}
	if c.Kind.Cluster { // one for each slot
		calls *= keys
	}
	before, began := c.heartbeatsSent(), time.Now()
	locktest.Await(c.T, func() bool { return c.heartbeatsSent() >= before+calls })
	if c.Kind.Virtual { // else one may have been late, and the next soon after it
		require.GreaterOrEqual(c.T, time.Since(began), 9*aliveFor/5)
	}
	c.quiet()
	for i, l := range their {
		c.unlock(l)
		for _, w := range waits[i*perKey : (i+1)*perKey] {
			c.unlock(locktest.Got(c.T, w))
		}
	}
	require.NotContains(c.T, c.commands(), "subscribe")
}

// When waiters are served soon, their enters do the work of heartbeats. Of the two callers of
// locker, one waits at each beat.
func fairBusy(c *harness) {
	const beat = time.Second
	before, end := c.heartbeatsSent(), time.Now().Add(3*beat+beat/2)
	var late atomic.Int64 // heartbeats of waiters that were not served soon, on a busy machine
	var callers sync.WaitGroup
	for _, l := range []locktest.Locker{c.Locker, c.Locker, c.Other} {
		callers.Go(func() {
			for began := time.Now(); began.Before(end); began = time.Now() {
				held := locktest.Lock(c.T, l, c.ctx, "k")
				time.Sleep(7 * time.Millisecond) // in virtual time, none ends at a beat
				c.unlock(held)
				late.Add(int64(time.Since(began) / (beat / 4)))
			}
		})
	}
	callers.Wait()
	require.LessOrEqual(c.T, c.heartbeatsSent()-before, int(late.Load()))
}

// A waiter has lost its place, and others enter meanwhile, which does not reveal it.
func fairFoundAmongNew(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	lost := c.inQueue(c.Locker, "k")
	owner := locktest.Queued(c.T, c.Server, c.Name("k"))[0]
	c.Server.Do(c.T, "LREM", locktest.QueueOf(c.Name("k")), "1", owner)
	c.Server.Do(c.T, "ZREM", locktest.ScoresOf(c.Name("k")), owner)
	began := time.Now()
	var found atomic.Bool
	var calls [3]atomic.Int64 // of the others; one of them at least is always there
	var others sync.WaitGroup
	for i := range calls {
		others.Go(func() {
			for ; !found.Load(); calls[i].Add(1) {
				require.Error(c.T, locktest.ErrOf(c.Locker.TryLockFor(c.ctx, "k", 50*time.Millisecond)))
			}
		})
	}
	locktest.Await(c.T, func() bool { // until somebody stays in the queue
		before := locktest.Queued(c.T, c.Server, c.Name("k"))
		for i := range calls {
			n := calls[i].Load()
			locktest.Await(c.T, func() bool { return calls[i].Load() >= n+2 })
		}
		return slices.ContainsFunc(locktest.Queued(c.T, c.Server, c.Name("k")), func(o string) bool { return slices.Contains(before, o) })
	})
	require.True(c.T, !c.Kind.Virtual || time.Since(began) < 4*time.Second, "it took more than heartbeats of 400 ms")
	found.Store(true)
	others.Wait()
	c.unlock(locktest.Next(c.T, their, lost))
}

// heartbeatsSent is how many heartbeats locker's client has sent.
func (c *harness) heartbeatsSent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heartbeats
}

// The message of a grant is held up until the grant lease is over and another has the key.
// A waiter that gets it then, and has not learnt from a heartbeat that it has lost its
// place, must not believe it, and waits on.
func fairLateGrant(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	late := c.inQueue(c.Locker, "k")
	_, letGo := c.hold(c.Proxy.OnReply, "heartbeat")
	c.Proxy.HoldReplies(true)
	c.unlock(their)
	require.Empty(c.T, locktest.Queued(c.T, c.Server, c.Name("k")), "it is granted")
	rival := locktest.Lock(c.T, c.Other, c.ctx, "k")
	c.Proxy.HoldReplies(false)
	locktest.Await(c.T, func() bool { return slices.Contains(c.noted(), "confirm") || len(late) > 0 })
	letGo()
	locktest.Await(c.T, func() bool { return len(locktest.Queued(c.T, c.Server, c.Name("k"))) == 1 || len(late) > 0 })
	require.Empty(c.T, late, "two holders")
	c.lives(rival)
	c.unlock(locktest.Next(c.T, rival, late))
}

// A wait that fails names the holder that its last heartbeat has met.
func fairLaterHolder(c *harness) {
	later := c.Kind.Open(c.T, c.Server.Client(c.T), locktest.Options{Label: "later"})
	first := locktest.Lock(c.T, c.Other, c.ctx, "k")
	second := c.inQueue(later, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	waiter := c.queueWith(ctx, c.Locker, "k")
	c.AwaitQueue("k", 2)
	held := locktest.Next(c.T, first, second)
	before := c.heartbeatsSent()
	locktest.Await(c.T, func() bool { return c.heartbeatsSent() >= before+2 }) // so that one was answered
	cancel()
	require.ErrorContains(c.T, (<-waiter).Err, `held by "later": context canceled`)
	c.unlock(held)
}

// A wait that fails does not name the hold that its own locker has ended since.
func fairOwnHold(c *harness) {
	other := c.Kind.Open(c.T, c.Server.Client(c.T), locktest.Options{Label: "other"})
	first := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	second := c.inQueue(other, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	waiter := c.queueWith(ctx, c.Locker, "k")
	c.AwaitQueue("k", 2)
	before := c.heartbeatsSent()
	locktest.Await(c.T, func() bool { return c.heartbeatsSent() >= before+2 }) // so that one has met the hold
	held := locktest.Next(c.T, first, second)
	cancel()
	require.NotContains(c.T, (<-waiter).Err.Error(), `held by "mine"`)
	c.unlock(held)
}

// If two keys had one queue, they would grant each other's waiters.
func fairOtherKey(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	first, second := c.inQueue(c.Locker, "k"), c.inQueue(c.Locker, "k")
	owners := locktest.Queued(c.T, c.Server, c.Name("k"))
	say := func(owner, of string) {
		locktest.Publish(c.T, c.Server, locktest.InboxOf(c.Name("k"), owner), fmt.Sprintf("%s %d 0 0%s", owner, locktest.Long.Milliseconds(), of))
	}
	say(owners[0], " for {"+c.Name("k")+"}")
	say(owners[0], "")
	say(owners[1], " for "+c.Name("k")) // comes after
	locktest.Got(c.T, second)
	require.Empty(c.T, first, "two holders")
	c.unlock(locktest.Next(c.T, their, first))
}

// A grant that ForceUnlock took back may arrive after the next grant, which came with an
// answer, on another connection: it is confirmed.
func fairOvertaken(c *harness) {
	mine := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	waiting := c.inQueue(c.Locker, "k")
	owner := locktest.Queued(c.T, c.Server, c.Name("k"))[0]
	locktest.Publish(c.T, c.Server, locktest.InboxOf(c.Name("k"), owner), fmt.Sprintf("%s %d 0 0 for %s", owner, locktest.Long.Milliseconds(), c.Name("k")))
	locktest.Await(c.T, func() bool { return slices.Contains(c.noted(), "confirm") || len(waiting) > 0 })
	require.Empty(c.T, waiting, "two holders")
	c.lives(mine)
	c.unlock(locktest.Next(c.T, mine, waiting))
}

// A key that is free for a moment belongs to its waiter, even if the grant cannot reach it
// now.
func fairTryLock(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	waiting := c.inQueue(c.Locker, "k")
	c.away()
	locktest.Await(c.T, func() bool {
		return locktest.Listeners(c.T, c.Server, locktest.InboxOf(c.Name("k"), locktest.Queued(c.T, c.Server, c.Name("k"))[0])) == 0
	})
	c.unlock(their)
	c.free("k")
	err := locktest.ErrOf(c.Other.TryLock(c.ctx, "k"))
	require.ErrorIs(c.T, err, holdfast.ErrNotAcquired)
	require.NotContains(c.T, err.Error(), "held by")
	c.Proxy.Refuse(false)
	c.unlock(locktest.Got(c.T, waiting))
	require.NoError(c.T, c.Other.Do(c.ctx, "k", func(context.Context) error { return nil }))
}

// A waiter that entered between two of another client has its turn between them.
func fairRunEnds(c *harness) {
	holder := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	first, second := c.inQueue(c.Locker, "k"), c.inQueue(c.Locker, "k")
	their := c.inQueue(c.Other, "k")
	last := c.inQueue(c.Locker, "k")
	owners := []string{}
	c.unlock(c.serve(holder, []<-chan locktest.Acquired{first, second, their, last}, func(_ int, _, next *holdfast.Lease) {
		owners = append(owners, next.Owner())
	}))
	require.Equal(c.T, owners[0], owners[1], "of one run")
	require.NotEqual(c.T, owners[0], owners[3])
}

// Waiters of several clients are served in the order in which they have entered, however long the
// queue is, and whether or not neighbours of one client share a hold.
func fairOrder(c *harness) {
	waiters := 300
	if !c.Kind.Virtual {
		waiters = 60
	}
	alone := c.Kind.Open(c.T, c.Server.Client(c.T), locktest.Options{Lease: locktest.Long, WaiterTTL: locktest.Long, Handover: &noHandover})
	holder := locktest.Lock(c.T, c.Other, c.ctx, "k")
	var waits []<-chan locktest.Acquired
	for i := range waiters { // three neighbours of each client in turn
		waits = append(waits, c.inQueue([]locktest.Locker{c.Locker, alone, c.Other}[i/3%3], "k"))
	}
	runs := 0
	c.unlock(c.serve(holder, waits, func(_ int, before, next *holdfast.Lease) {
		if before.Owner() == next.Owner() {
			runs++
		}
	}))
	require.Greater(c.T, runs, waiters/6, "an order without runs proves little")
}

// oneByOne are locks that are not handed over, with heartbeats every 4 s.
var oneByOne = locktest.Options{Handover: &noHandover, WaiterTTL: 20 * time.Second, Lease: locktest.Long}

// Waiters are told their places when they enter and as they move up, which costs no call more.
func onPlace(c *harness) {
	held := locktest.Lock(c.T, c.Other, c.ctx, "k")
	var first, second told
	waits := []<-chan locktest.Acquired{
		c.inQueue(c.Other, "k"), c.inQueue(c.Other, "k"), c.inQueue(c.Locker, "k", first.option()), c.inQueue(c.Other, "k"),
		c.inQueue(c.Locker, "k", second.option()),
	}
	first.await(c.T, 3)
	second.await(c.T, 5)
	c.commands()
	for i, places := range [][2][]int{
		{{3, 2}, {5, 4}}, {{3, 2, 1}, {5, 4, 3}}, {{3, 2, 1}, {5, 4, 3, 2}}, {{3, 2, 1}, {5, 4, 3, 2, 1}}, {{3, 2, 1}, {5, 4, 3, 2, 1}},
	} {
		letGo := func() {}
		if i == 2 { // c.Locker gets the key, and learns by that where its next waiter stands. A heartbeat was just answered: the next is far
			_, letGo = c.hold(c.Proxy.OnReply, "heartbeat")
		}
		held = locktest.Next(c.T, held, waits[i])
		first.await(c.T, places[0]...)
		second.await(c.T, places[1]...)
		if i < 2 { // it only waits
			c.quiet()
		}
		letGo()
	}
	c.unlock(held)
}

// A call whose OnPlace panics gives up its place, and its caller sees the panic.
func onPlacePanics(c *harness) {
	held := locktest.Lock(c.T, c.Other, c.ctx, "k")
	require.PanicsWithValue(c.T, "no 1", func() {
		_, _ = c.Locker.Lock(c.ctx, "k", holdfast.OnPlace(func(place int) { panic(fmt.Sprintf("no %d", place)) }))
	})
	c.AwaitQueue("k", 0)
	require.Panics(c.T, func() { // when it has got the lease
		_, _ = c.Locker.Lock(c.ctx, "k", holdfast.OnPlace(func(int) {
			owner := c.Owner("k")
			c.unlock(held)
			locktest.Await(c.T, func() bool { return c.Owner("k") != owner })
			time.Sleep(time.Second) // in virtual time, the message has come
			panic("")
		}))
	})
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
}

// told are the places of a waiter.
type told struct {
	mu  sync.Mutex
	all []int
}

func (t *told) option() holdfast.LockOption {
	return holdfast.OnPlace(func(place int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all = append(t.all, place)
	})
}

func (t *told) await(tb testing.TB, want ...int) {
	tb.Helper()
	var all []int
	locktest.Await(tb, func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		all = slices.Clone(t.all)
		return slices.Equal(want, all)
	}, "%v is not %v", &all, want)
}

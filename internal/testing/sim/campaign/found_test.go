package campaign_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
)

// What campaigns have found, each as the shortest story that shows it.

// opened are lockers, one of each process.
func opened[L io.Closer](t *testing.T, w *sim.World, open func(rueidis.Client, ...holdfast.Option) (L, error), opts ...holdfast.Option) (lockers []L) {
	for p := range w.Links {
		lockers = append(lockers, locktest.Opened(open(w.Clients(p)[0], opts...))(t))
	}
	return lockers
}

// inWorld runs a test in a world of one server, with a locker of each process.
func inWorld[L io.Closer](
	t *testing.T, processes int, open func(rueidis.Client, ...holdfast.Option) (L, error), test func(*testing.T, *sim.World, []L), opts ...holdfast.Option,
) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(t, 1, processes, 1)
		test(t, w, opened(t, w, open, opts...))
	})
}

// A nested Unlock waits for the call of another until the lease would be over. Meanwhile the last Unlock
// has ended it in time, so nothing was lost.
func TestG3_ANestedUnlockAfterTheLastIsNoLoss(t *testing.T) {
	inWorld(t, 1, rlock.New, func(t *testing.T, w *sim.World, lockers []*rlock.Locker) {
		l := lockers[0]
		outer := locktest.Lock(t, l, t.Context(), "k")
		leases := []*holdfast.Lease{outer}
		for range 2 {
			leases = append(leases, locktest.Lock(t, l, outer.Bind(t.Context()), "k"))
		}
		w.Servers[0].Pause()
		defer w.Servers[0].Resume()
		time.Sleep(4500 * time.Millisecond) // the call ends after the lease would
		ends := make(chan error, len(leases))
		for _, l := range slices.Backward(leases) {
			go func() { ends <- l.Unlock(t.Context()) }()
			synctest.Wait()
		}
		for range leases {
			require.NotErrorIs(t, <-ends, holdfast.ErrLost)
		}
	}, holdfast.WithLease(6*time.Second))
}

// An acquire with a fixed lease arrives late, so Redis has the lock for longer than the lease
// counts. The rest is undone.
func TestG4_TheRestOfALateFixedLeaseIsUndone(t *testing.T) {
	inWorld(t, 1, rlock.New, func(t *testing.T, w *sim.World, lockers []*rlock.Locker) {
		l := lockers[0]
		w.Links[0][0].HoldRequests(true)
		time.AfterFunc(4*time.Second, func() { w.Links[0][0].HoldRequests(false) })
		held := locktest.Lock(t, l, t.Context(), "k", holdfast.FixedLease(8*time.Second))
		<-held.Done()
		time.Sleep(time.Second)
		require.False(t, w.Servers[0].Redis().Exists("k"))
	})
}

// The reply that says how long the holder's lease lasts comes late. The waiter counts from its request,
// so it has the key a round trip after that lease.
func TestG4_ALateReplyDoesNotDelayTheNextAttempt(t *testing.T) {
	inWorld(t, 2, rlock.New, func(t *testing.T, w *sim.World, lockers []*rlock.Locker) {
		began := time.Now()
		locktest.Lock(t, lockers[0], t.Context(), "k", holdfast.FixedLease(40*time.Second)) // and dies
		link := w.Links[1][0]
		time.AfterFunc(29*time.Second, func() { link.HoldReplies(true) }) // a waiter asks again after its own lease of 30 s
		time.AfterFunc(33*time.Second, func() { link.HoldReplies(false) })
		next := locktest.Lock(t, lockers[1], t.Context(), "k")
		require.Less(t, time.Since(began), 40*time.Second+10*time.Millisecond)
		require.NoError(t, next.Unlock(t.Context()))
	})
}

// Replies of many calls come late at once. That says little of the next round trip, so processes that let
// each other go first do not wait for long.
func TestG4_AStallDoesNotSpoilTheRoundTrip(t *testing.T) {
	inWorld(t, 3, rlock.New, func(t *testing.T, w *sim.World, lockers []*rlock.Locker) {
		leases := make(chan *holdfast.Lease, 4)
		wait := func(ctx context.Context, p int) {
			go func() {
				if l, err := lockers[p].Lock(ctx, "k"); err == nil {
					leases <- l
				}
			}()
			time.Sleep(100 * time.Millisecond)
		}
		held := locktest.Lock(t, lockers[0], t.Context(), "k")
		gone, cancel := context.WithCancel(t.Context())
		for _, p := range []int{1, 1} {
			wait(t.Context(), p)
		}
		wait(gone, 2)
		wait(t.Context(), 0)
		for _, p := range []int{0, 1} {
			w.Links[p][0].HoldReplies(true)
			for i := range 16 {
				go func() {
					_ = lockers[p].Do(t.Context(), fmt.Sprint("another", p, i), func(context.Context) error { return nil })
				}()
			}
		}
		time.Sleep(3 * time.Second)
		for _, p := range []int{0, 1} {
			w.Links[p][0].HoldReplies(false)
		}
		time.Sleep(time.Second)
		w.Links[2][0].HoldRequests(true) // it is gone, but Redis counts it as a listener
		cancel()
		require.NoError(t, held.Unlock(t.Context()))
		for range 3 {
			began := time.Now()
			l := <-leases
			require.Less(t, time.Since(began), 200*time.Millisecond)
			time.Sleep(50 * time.Millisecond)
			require.NoError(t, l.Unlock(t.Context()))
		}
		w.Links[2][0].HoldRequests(false)
	}, holdfast.WithLocalHandover(20*time.Millisecond))
}

// A partition holds an acquire for longer than its fixed lease, which is shorter than that of its
// locker, and the nodes count as away by then. The acquire arrives late, and is undone all the same.
func TestG4_ALateAcquireOfAShortLeaseIsUndone(t *testing.T) {
	defer func(n int) { *callers = n }(*callers)
	*callers = 3
	for range 3 { // what happens at one instant has no order: not every run met it
		c := newCampaign("multilock", 1024, 4*time.Minute)
		synctest.Test(t, c.run)
		require.Empty(t, c.judge.broken)
	}
}

// A writer gives up, and its last acquire is late. It takes the lock, which is its turn: when it is undone, the
// readers that wait are next, and then the writer that waits.
func TestG4_ALateAcquireIsATurn(t *testing.T) {
	inWorld(t, 4, rwlock.New, func(t *testing.T, w *sim.World, lockers []*rwlock.Locker) {
		ctx := t.Context()
		held := locktest.Lock(t, lockers[0].RLocker(), ctx, "k")
		gaveUp, giveUp := context.WithCancel(ctx)
		left, served := locktest.GoLock(lockers[1], gaveUp, "k"), make(chan string, 2)
		time.Sleep(100 * time.Millisecond)
		wait := func(who string, l holdfast.Locker) {
			_ = l.Do(ctx, "k", func(context.Context) error { served <- who; return nil })
		}
		go wait("writer", lockers[2])
		time.Sleep(100 * time.Millisecond)
		go wait("reader", lockers[3].RLocker())
		time.Sleep(100 * time.Millisecond)
		w.Links[1][0].HoldRequests(true)
		require.NoError(t, held.Unlock(ctx))
		time.Sleep(100 * time.Millisecond)
		giveUp()
		require.ErrorIs(t, (<-left).Err, context.Canceled)
		time.Sleep(100 * time.Millisecond)
		w.Links[1][0].HoldRequests(false)
		require.Equal(t, "reader", <-served)
		require.Equal(t, "writer", <-served)
	})
}

// A renewal is held back, and carried out just before the nodes would have ended the lease by themselves. The locker cannot
// reach them meanwhile; once it can, it ends what the renewal has prolonged.
func TestG4_ALateRenewalIsEnded(t *testing.T) {
	const lease = 30 * time.Second
	for _, nodes := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			w := sim.NewWorld(t, 1, 2, nodes)
			var lockers []holdfast.Locker
			for p := range w.Links {
				clients := w.Clients(p, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = time.Second })
				if nodes == 1 {
					lockers = append(lockers, locktest.Opened(rlock.New(clients[0], holdfast.WithLease(lease)))(t))
					continue
				}
				lockers = append(lockers, locktest.Opened(multilock.New(clients, holdfast.WithLease(lease), multilock.WithoutRestartGuard()))(t))
			}
			held, next := locktest.Lock(t, lockers[0], t.Context(), "k"), make(chan *holdfast.Lease)
			began := time.Now()
			go func() { next <- locktest.Lock(t, lockers[1], t.Context(), "k") }()
			time.Sleep(19 * time.Second) // one renewal has passed: the nodes know its script
			for _, l := range w.Links[0] {
				renews := redistest.Once(l.OnRequest, locktest.Is("renew"), redistest.Hold)
				go func() { <-renews; l.Refuse(true) }() // its connection ends with the time of the call
			}
			time.Sleep(20500 * time.Millisecond)
			for _, l := range w.Links[0] {
				l.Release()
			}
			<-held.Done()
			time.Sleep(53*time.Second - time.Since(began))
			for _, l := range w.Links[0] {
				l.Refuse(false)
			}
			e := <-next
			require.Less(t, time.Since(began), 55*time.Second, "%d nodes", nodes)
			require.NoError(t, e.Unlock(t.Context()))
		})
	}
}

package campaign_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
)

// What campaigns and readers have found in fair.

// A release that Redis does not answer is repeated. Meanwhile a heartbeat of the same locker
// finds its owner still standing, and must not give it up: the repeat would find nothing, and
// Unlock would report a loss.
func TestG3_FairUnlockIsTrueAfterAnOutage(t *testing.T) {
	for away := time.Second; away < 9*time.Second; away += 200 * time.Millisecond { // the repeats and the heartbeats have their own times
		synctest.Test(t, func(t *testing.T) {
			w := sim.NewWorld(t, 1, 1, 1)
			l := opened(t, w, fair.New)[0]
			first := locktest.Lock(t, l, t.Context(), "k")
			time.AfterFunc(time.Second, func() { _ = first.Unlock(t.Context()) })
			held := locktest.Lock(t, l, t.Context(), "k") // from the queue
			next := locktest.Go(func() error { return locktest.Cycle(l, t.Context(), "k") })
			time.Sleep(time.Second)
			w.Links[0][0].Refuse(true)
			w.Links[0][0].Cut()
			time.AfterFunc(away, func() { w.Links[0][0].Refuse(false) })
			require.NoError(t, held.Unlock(t.Context()), "away for %v", away)
			require.NoError(t, <-next)
		})
	}
}

// lockTwice has two callers wait, which enter together, and so are served in one run. The channel gets their leases.
func lockTwice(ctx context.Context, l *fair.Locker) <-chan *holdfast.Lease {
	leases := make(chan *holdfast.Lease)
	for range 2 {
		go func() {
			if e, err := l.Lock(ctx, "k"); err == nil {
				leases <- e
			}
		}()
	}
	return leases
}

// lastOfARun returns the second of two leases that were served in one run. Both waiters still stand in Redis' queue.
func lastOfARun(t *testing.T, w *sim.World, l *fair.Locker) *holdfast.Lease {
	t.Helper()
	first := locktest.Lock(t, l, t.Context(), "k")
	leases := lockTwice(t.Context(), l)
	time.Sleep(time.Second)
	require.NoError(t, first.Unlock(t.Context()))
	require.NoError(t, (<-leases).Unlock(t.Context()))
	last := <-leases
	require.True(t, w.Servers[0].Redis().Exists("redisson_lock_queue:{k}"), "it has been served in memory")
	return last
}

// A release that Redis does not answer for a lease is given up: the key frees itself. Those that
// were served in the same run still stand in the queue, and must leave it.
func TestG7_FairRunLeavesTheQueueAfterAnOutage(t *testing.T) {
	inWorld(t, 1, fair.New, func(t *testing.T, w *sim.World, lockers []*fair.Locker) {
		l := lockers[0]
		last := lastOfARun(t, w, l)
		w.Links[0][0].Refuse(true)
		w.Links[0][0].Cut()
		require.ErrorIs(t, last.Unlock(t.Context()), holdfast.ErrUnknown)
		w.Links[0][0].Refuse(false)
		time.Sleep(3 * time.Second)
		require.False(t, w.Servers[0].Redis().Exists("redisson_lock_queue:{k}"))
	}, holdfast.WithLease(6*time.Second))
}

// So must they if the key is overwritten, which ends all repeats of the release.
func TestG7_FairRunLeavesTheQueueOfAnOverwrittenKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log redistest.Log
		w := sim.NewWorld(t, 1, 1, 1)
		l := opened(t, w, fair.New, holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))[0]
		last, redis := lastOfARun(t, w, l), w.Servers[0].Redis()
		redis.Del("k")
		require.NoError(t, redis.Set("k", "x"))
		require.ErrorIs(t, last.Unlock(t.Context()), holdfast.ErrWrongType)
		time.Sleep(time.Second)
		require.False(t, redis.Exists("redisson_lock_queue:{k}"))
		require.NotContains(t, log.String(), "could not leave the queue")
	})
}

// A grant that is not trusted has reserved numbers for a run. Were they skipped, the number of its hold would be ahead of the
// clock, and larger than that of the next hold if Redis forgets it.
func TestG10_FairConfirmedFenceIsNotAheadOfTheClock(t *testing.T) {
	inWorld(t, 3, fair.New, func(t *testing.T, w *sim.World, lockers []*fair.Locker) {
		held := locktest.Lock(t, lockers[0], t.Context(), "k")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leases := lockTwice(ctx, lockers[1])
		time.Sleep(4 * time.Second) // a grant is confirmed after half a grant lease
		require.NoError(t, held.Unlock(t.Context()))
		second := <-leases
		require.Greater(t, second.Fence(), held.Fence())
		cancel()
		w.Servers[0].Forget()
		third := locktest.Lock(t, lockers[2], t.Context(), "k")
		require.Greater(t, third.Fence(), second.Fence())
		require.NoError(t, third.Unlock(t.Context()))
	}, holdfast.WithFencing(), holdfast.WithLocalHandover(time.Second))
}

// A holder with a lease shorter than the grant lease dies before its first renewal.
func TestG4_FairGrantOfAShortLease(t *testing.T) {
	inWorld(t, 3, fair.New, func(t *testing.T, w *sim.World, lockers []*fair.Locker) {
		held := locktest.Lock(t, lockers[0], t.Context(), "k")
		served := make(chan *holdfast.Lease)
		for _, l := range lockers[1:] {
			go func() {
				if e, err := l.Lock(t.Context(), "k"); err == nil {
					served <- e
				}
			}()
			time.Sleep(50 * time.Millisecond)
		}
		require.NoError(t, held.Unlock(t.Context()))
		<-served
		w.Links[1][0].Refuse(true)
		w.Links[1][0].Cut()
		died := time.Now()
		require.NoError(t, (<-served).Unlock(t.Context()))
		require.Less(t, time.Since(died), 2600*time.Millisecond, "a lease, a heartbeat of a new waiter, and a tenth of the lease")
	}, holdfast.WithLease(time.Second))
}

// A confirmation that was not answered may be carried out after the one that was: Redis then has the key for longer than
// the fixed lease, whose end must free it.
func TestG4_FairConfirmedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 6 * time.Second
		w := sim.NewWorld(t, 1, 3, 1)
		var lockers []*fair.Locker
		for p := range w.Links {
			clients := w.Clients(p, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = lease / 4 })
			lockers = append(lockers, locktest.Opened(fair.New(clients[0], holdfast.WithLease(lease)))(t))
		}
		held, got := locktest.Lock(t, lockers[0], t.Context(), "k"), make(chan *holdfast.Lease)
		go func() {
			e, err := lockers[1].Lock(t.Context(), "k", holdfast.FixedLease(lease/2))
			assert.NoError(t, err)
			got <- e
		}()
		time.Sleep(500 * time.Millisecond) // it waits
		link, once := w.Links[1][0], new(sync.Once)
		link.OnRequest(func([]string) (v redistest.Verdict) {
			v = redistest.Pass
			once.Do(func() { v = redistest.Hold })
			return v
		})
		require.NoError(t, held.Unlock(t.Context()))
		e := <-got
		next := locktest.Go(func() error { return locktest.Cycle(lockers[2], t.Context(), "k") })
		time.Sleep(time.Until(e.Deadline()) - 500*time.Millisecond)
		link.Release()
		<-e.Done()
		over := time.Now()
		require.NoError(t, <-next)
		require.Less(t, time.Since(over), 10*time.Millisecond)
	})
}

// The waiters of a run are served in memory also behind one that confirms its grant.
func TestFairHandsOverAfterAConfirmation(t *testing.T) {
	inWorld(t, 2, fair.New, func(t *testing.T, w *sim.World, lockers []*fair.Locker) {
		held := locktest.Lock(t, lockers[0], t.Context(), "k")
		leases := lockTwice(t.Context(), lockers[1])
		time.Sleep(time.Second)
		require.NoError(t, held.Unlock(t.Context()))
		first := <-leases
		time.Sleep(time.Millisecond) // a number for each microsecond
		require.NoError(t, first.Unlock(t.Context()))
		second := <-leases
		require.Equal(t, first.Owner(), second.Owner())
		require.Greater(t, second.Fence(), first.Fence())
		require.NoError(t, second.Unlock(t.Context()))
	}, holdfast.WithFencing(), holdfast.WithLease(3*time.Second), holdfast.WithLocalHandover(time.Second))
}

// The log tells of each lost lease, also of one that ends when Redis has granted the key to another waiter here.
func TestFairLogsALossToAWaiterOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log redistest.Log
		w := sim.NewWorld(t, 1, 1, 1)
		l := opened(t, w, fair.New, holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))[0]
		held := locktest.Lock(t, l, t.Context(), "k")
		next := locktest.GoLock(l, t.Context(), "k")
		time.Sleep(time.Second)
		w.Servers[0].Redis().Del("k")
		require.NoError(t, locktest.Got(t, next).Unlock(t.Context()))
		require.ErrorIs(t, held.Err(), holdfast.ErrLost)
		require.Contains(t, log.String(), "lease lost")
	})
}

// A ForceUnlock may meet the grant of a waiter that has not confirmed it. That waiter goes on
// waiting, behind those that have come meanwhile.
func TestG8_ForceUnlockTakesAGrantOnItsWay(t *testing.T) {
	inWorld(t, 3, fair.New, func(t *testing.T, w *sim.World, lockers []*fair.Locker) {
		held := locktest.Lock(t, lockers[0], t.Context(), "k")
		served := make(chan int)
		for p, l := range lockers[1:] {
			go func() {
				_ = l.Do(t.Context(), "k", func(context.Context) error { served <- p + 1; return nil })
			}()
			time.Sleep(4 * time.Second) // a grant is confirmed after half a lease
		}
		w.Links[1][0].SetDelay(10*time.Millisecond, 0) // its confirmation is on its way
		require.NoError(t, held.Unlock(t.Context()))
		require.True(t, locktest.Must(lockers[0].ForceUnlock(t.Context(), "k"))(t))
		require.Equal(t, 2, <-served)
		require.Equal(t, 1, <-served)
	}, holdfast.WithLease(6*time.Second))
}

// A call enters the queue of a key that has just become free, so Redis serves the waiter before it, of the
// same locker, and says so in the reply. The call is gone by then.
func TestG4_AGrantIsInTheReplyToACallThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(t, 1, 2, 1)
		lockers := opened(t, w, fair.New, fair.WithWaiterTTL(30*time.Second))               // heartbeats are rare
		locktest.Lock(t, lockers[0], t.Context(), "k", holdfast.FixedLease(22*time.Second)) // and dies
		served := make(chan time.Time)
		go func() {
			_ = lockers[1].Do(t.Context(), "k", func(context.Context) error { served <- time.Now(); return nil })
		}()
		time.Sleep(22*time.Second + 10*time.Millisecond)
		link := w.Links[1][0]
		link.HoldReplies(true)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.Error(t, locktest.ErrOf(lockers[1].Lock(ctx, "k")))
		link.HoldReplies(false)
		require.Less(t, (<-served).Sub(began), 100*time.Millisecond)
	})
}

// The heartbeat that should advance the scores fails, as Redis is away for a while. The next one advances
// them, so that no Java process takes the waiter for dead.
func TestG8_AFailedRefreshIsRepeated(t *testing.T) {
	inWorld(t, 1, fair.New, func(t *testing.T, w *sim.World, lockers []*fair.Locker) {
		l := lockers[0]
		held := locktest.Lock(t, l, t.Context(), "k")
		began := time.Now()
		waits := locktest.Go(func() error { return locktest.Cycle(l, t.Context(), "k") })
		time.Sleep(15 * time.Second)
		w.Links[0][0].Refuse(true)
		w.Links[0][0].Cut()
		time.Sleep(12500 * time.Millisecond)
		w.Links[0][0].Refuse(false)
		time.Sleep(2 * time.Second)
		for _, ends := range w.Servers[0].Scores("redisson_lock_timeout:{k}") {
			require.Greater(t, ends, float64(began.Add(35*time.Second).UnixMilli()))
		}
		require.Len(t, w.Servers[0].Scores("redisson_lock_timeout:{k}"), 1)
		require.NoError(t, held.Unlock(t.Context()))
		require.NoError(t, <-waits)
	}, fair.WithWaiterTTL(20*time.Second))
}

// While many waiters of a locker give up, others of it enter.
func TestG4_FairEntersWhileOthersLeave(t *testing.T) { fairEntersWhileOthersLeave(t, nil) }

// The same, but Redis refuses to let any leave.
func TestG4_FairEntersWhileOthersMayNotLeave(t *testing.T) {
	refused, leaves := 0, locktest.Is("give_up")
	fairEntersWhileOthersLeave(t, func(cmd []string) bool {
		if leaves(cmd) {
			refused++ // calls are one after another
		}
		return leaves(cmd)
	})
	require.Positive(t, refused)
}

func fairEntersWhileOthersLeave(t *testing.T, refused func(cmd []string) bool) {
	inWorld(t, 2, fair.New, func(t *testing.T, w *sim.World, lockers []*fair.Locker) {
		w.Links[0][0].OwnWords("ACL failure in script: User default has no permissions to run the 'hdel' command", true, refused)
		l, held := lockers[0], locktest.Lock(t, lockers[1], t.Context(), "k")
		var all sync.WaitGroup
		const many, apart = 1000, 200 * time.Microsecond // five give up in a round trip
		for i := range many {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Duration(i)*apart)
			all.Go(func() {
				defer cancel()
				_, err := l.Lock(ctx, "k")
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		time.Sleep(10*time.Second + many/4*apart)
		began, entered := time.Now(), make([]chan time.Duration, 2) // one waits for the answer to the other
		for i := range entered {
			entered[i] = make(chan time.Duration, many)
			place := holdfast.OnPlace(func(int) { entered[i] <- time.Since(began) })
			all.Go(func() {
				assert.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil }, place))
			})
		}
		last := max(<-entered[0], <-entered[1])
		w.Links[0][0].OwnWords("", true, nil)
		time.Sleep(many * apart) // until all others have left
		require.NoError(t, held.Unlock(t.Context()))
		all.Wait()
		require.Less(t, last, many/4*apart)
	})
}

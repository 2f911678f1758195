package watchdog

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type bare struct {
	Lease
	at int64 // where the queue is told to put it
}

func TestQueueKeepsOrderAndPlaces(t *testing.T) {
	var q queue[*bare]
	in := map[*bare]bool{}
	for n := range int64(20_000) {
		h := &bare{}
		h.until.Store(forever)
		switch {
		case rand.IntN(5) < 2:
			in[h] = true
		case len(in) > 0:
			for h = range in { // any
				break
			}
			if rand.IntN(2) == 0 {
				delete(in, h)
				q.remove(h)
				q.remove(h) // does nothing
			}
		}
		if in[h] {
			h.at = n + rand.Int64N(100)
			q.set(h.at, h)
		}
		require.Len(t, q.items, len(in))
	}
	for i, x := range q.items {
		require.True(t, in[x.h])
		require.Equal(t, int32(i)+1, x.h.place)
	}
	for last := int64(0); len(q.items) > 0; {
		require.LessOrEqual(t, last, q.first())
		last = q.first()
		h := q.items[0].h
		require.Equal(t, last, h.at)
		q.remove(h)
		require.False(t, q.has(h))
	}
	require.Equal(t, int64(forever), q.first())
}

func TestG2_WhoSawALeaseEndIsNotContradictedByARenewalAtThatInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		l := &Lease{epoch: &epoch}
		l.until.Store(int64(time.Second))
		time.Sleep(time.Second - 1)
		before := l.until.Load() // a renewal finds it alive, and is held up
		require.True(t, l.Alive())
		time.Sleep(time.Nanosecond)
		require.False(t, l.Alive())
		require.False(t, l.extend(before, int64(time.Minute)))
		require.False(t, l.Alive())
		require.Equal(t, epoch.Add(time.Second), l.Deadline())
	})
}

func TestTheSchedulerIsNotWokenForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 30 * time.Second
		var renewed []time.Duration
		begin := time.Now()
		w := New(Config[*bare]{
			Lease: lease,
			Renew: func(_ context.Context, _ []*bare, answers []Answer) {
				renewed = append(renewed, time.Since(begin))
				answers[0] = Renewed
			},
			Ended: func(*bare, error) {},
		})
		defer w.Close()
		watch := func(lease time.Duration) *bare {
			h := &bare{}
			w.Watch(h, Terms{Anchor: time.Now(), Lease: lease, Renew: true})
			return h
		}
		alarm := func() time.Duration {
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			return time.Duration(w.alarm)
		}

		h := watch(lease)
		require.Equal(t, lease/3, alarm())
		w.Forget(h)
		require.Equal(t, lease/3, alarm(), "nothing is left, but the alarm stays")
		time.Sleep(time.Second)
		for range 100 {
			w.Forget(watch(lease))
		}
		watch(lease)
		require.Equal(t, lease/3, alarm(), "later than the alarm")
		time.Sleep(lease/3 - time.Second)
		require.Equal(t, time.Second+lease/3, alarm(), "woken for nothing, once")

		short := watch(time.Second)
		require.Equal(t, lease/3+time.Second/3, alarm(), "earlier")
		w.Forget(short)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Second + lease/3}, renewed)
	})
}

func TestNothingIsKeptOfAHoldThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 30 * time.Second
		hang := make(chan struct{})
		w := New(Config[*bare]{
			Lease: lease,
			Renew: func(_ context.Context, holds []*bare, answers []Answer) {
				<-hang
				for i, h := range holds {
					answers[i] = Answer(h.at)
				}
			},
			Ended: func(*bare, error) {},
		})
		defer w.Close()
		forgotten, lost := &bare{at: int64(Unknown)}, &bare{at: int64(NotOurs)}
		for _, h := range []*bare{forgotten, lost} {
			w.Watch(h, Terms{Anchor: time.Now(), Lease: lease, Renew: true})
		}
		time.Sleep(lease / 3)
		synctest.Wait()
		w.Forget(forgotten)
		time.Sleep(lease / 6)
		synctest.Wait()
		w.mu.Lock()
		require.Len(t, w.queue.items, 1, "the one that is to be tried again")
		w.mu.Unlock()
		close(hang)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Empty(t, w.queue.items)
		require.Empty(t, w.ready)
		require.Empty(t, w.calls)
	})
}

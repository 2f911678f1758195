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

// Instants grow as time goes by, but for some that are odd; the line and the heap together are a queue.
func TestQueueKeepsOrderAndPlaces(t *testing.T) {
	q := newQueue[*bare](1)
	in := map[*bare]bool{}
	lined := 0
	for n := range int64(20_000) {
		at := n
		if rand.IntN(3) == 0 {
			at += rand.Int64N(100)
		}
		switch h := (&bare{at: at}); {
		case rand.IntN(5) < 2:
			in[h] = true
			if rand.IntN(10) == 0 {
				q.heap.add(item[*bare]{h.at, h})
			} else {
				q.set(h.at, h)
			}
		case len(in) > 0:
			for h = range in { // any
				break
			}
			if rand.IntN(2) == 0 {
				h.at = at
				q.set(h.at, h)
			} else {
				delete(in, h)
				q.remove(h)
				q.remove(h) // does nothing
			}
		}
		lined = max(lined, q.line.used)
		require.Equal(t, len(in), q.len())
	}
	require.NotEmpty(t, q.heap.items)
	require.Greater(t, q.line.used, q.line.alive, "holes")
	require.LessOrEqual(t, len(q.line.items), 2*lined)
	for i, x := range q.heap.items {
		require.True(t, in[x.h])
		require.Equal(t, int32(i)+1, x.h.place[1])
		require.LessOrEqual(t, q.heap.items[max(0, (i-1)/children)].at, x.at)
	}
	alive := 0
	for i, x := range q.line.items {
		if !x.present() {
			continue
		}
		alive++
		require.True(t, in[x.h])
		require.Equal(t, -int32(i)-1, x.h.place[1])
	}
	require.Equal(t, q.line.alive, alive)
	for last := int64(0); q.len() > 0; {
		require.LessOrEqual(t, last, q.first())
		last = q.first()
		h := q.head()
		require.Equal(t, last, h.at)
		require.Zero(t, h.place[0])
		q.remove(h)
		require.False(t, q.has(h))
	}
	require.Equal(t, int64(forever), q.first())
	require.Zero(t, q.line.used)
}

func TestOnlyWhatIsOddGoesToTheHeap(t *testing.T) {
	q := newQueue[*bare](0)
	for i := range int64(nearly + 1) {
		q.set(1000+i, &bare{})
	}
	q.set(1001, &bare{})
	require.Empty(t, q.heap.items, "not far from the end")
	q.set(999, &bare{})
	require.Len(t, q.heap.items, 1)

	used := q.line.used
	for i := range int64(1000) {
		h := &bare{}
		q.set(2000+i, h)
		q.remove(h)
		require.Equal(t, used, q.line.used, "a short hold leaves no hole")
	}

	w := New(Config[*bare]{
		Lease: time.Minute,
		Renew: func(context.Context, []*bare, []Answer) {},
		Ended: func(*bare, error) {},
	})
	defer w.Close()
	w.Watch(&bare{}, Terms{Anchor: time.Now(), Lease: time.Hour})
	w.Watch(&bare{}, Terms{Anchor: time.Now(), Lease: time.Minute, Renew: true})
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.ends.heap.items, 1, "a fixed lease")
	require.Equal(t, 1, w.ends.line.alive)
	require.Equal(t, 1, w.due.line.alive)
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
		require.Equal(t, 1, w.due.len(), "the one that is to be tried again")
		require.Equal(t, 1, w.ends.len())
		w.mu.Unlock()
		close(hang)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Zero(t, w.due.len())
		require.Zero(t, w.ends.len())
		require.Empty(t, w.calls)
	})
}

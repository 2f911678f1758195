package watchdog

import (
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
		require.Equal(t, int32(i)+1, x.h.index)
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
		origin := time.Now()
		l := &Lease{origin: &origin}
		l.until.Store(int64(time.Second))
		time.Sleep(time.Second - 1)
		before := l.until.Load() // a renewal finds it alive, and is held up
		require.True(t, l.Alive())
		time.Sleep(time.Nanosecond)
		require.False(t, l.Alive())
		require.False(t, l.extend(before, int64(time.Minute)))
		require.False(t, l.Alive())
		require.Equal(t, origin.Add(time.Second), l.Deadline())
	})
}

func TestTheSchedulerIsNotWokenForNothing(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		alarm := func() time.Duration {
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			return time.Duration(r.alarm)
		}
		h := r.hold(Terms{})
		require.Equal(t, lease/3, alarm())
		r.Forget(h)
		require.Equal(t, lease/3, alarm(), "nothing is left, but the alarm stays")
		time.Sleep(time.Second)
		for range 100 {
			r.Forget(r.hold(Terms{}))
		}
		kept := r.hold(Terms{})
		require.Equal(t, lease/3, alarm(), "later than the alarm")
		time.Sleep(lease/3 - time.Second)
		require.Equal(t, time.Second+lease/3, alarm(), "woken for nothing, once")

		short := r.hold(Terms{Lease: time.Second, Renew: true})
		require.Equal(t, lease/3+time.Second/3, alarm(), "earlier")
		r.Forget(short)
		pass(time.Second)
		require.Equal(t, []time.Duration{time.Second + lease/3}, r.starts(kept))
		require.Len(t, r.made(), 1)
	})
}

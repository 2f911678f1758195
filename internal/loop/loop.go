// Package loop has what wakes a loop in the background, how it pauses, and the back-off between its
// attempts.
package loop

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Poke wakes the loop that receives from a one-slot channel.
func Poke(poke chan<- struct{}) {
	select {
	case poke <- struct{}{}:
	default:
	}
}

// Sleep returns true after d, or false as soon as woken has something or is closed.
func Sleep(d time.Duration, woken <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-woken:
		return false
	}
}

// Backoff is the pause between attempts that a server did not answer: it grows, and half of it is
// random, so that clients that failed together do not come back together. The zero value doubles from 1 ms.
type Backoff struct {
	First time.Duration // 0: 1 ms
	Nth   time.Duration // each pause is longer by an nth of the last; 0: it doubles
	Last  time.Duration // before chance shortened it; 0: the next one is the first
}

// Below is the next pause, at most as long as given.
func (b *Backoff) Below(most time.Duration) time.Duration {
	first := cmp.Or(b.First, time.Millisecond)
	b.Last = min(max(b.Last+b.Last/cmp.Or(b.Nth, 1), first), max(most, first))
	return Jitter(b.Last)
}

// Within is the next pause of what keeps a lease: at most a tenth of that, and a second.
func (b *Backoff) Within(lease time.Duration) time.Duration {
	return b.Below(min(lease/10, time.Second))
}

// Jitter returns a random duration between d/2 and d.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

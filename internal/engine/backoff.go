package engine

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// backoff is the delay between attempts that Redis did not answer: it doubles
// from 1 ms to a tenth of a lease (at most a second), and half of it is random,
// so that lockers that failed together do not come back together.
type backoff struct{ last time.Duration }

func (b *backoff) next(lease time.Duration) time.Duration {
	const least, most = time.Millisecond, time.Second
	b.last = min(max(2*b.last, least), max(min(lease/10, most), least))
	return b.last/2 + rand.N(b.last/2)
}

// sleep returns true after d, or false as soon as it is woken.
func sleep(d time.Duration, woken <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-woken:
		return false
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nudge wakes the loop that receives from a one-slot channel.
func nudge(poke chan<- struct{}) {
	select {
	case poke <- struct{}{}:
	default:
	}
}

// Average is a moving average over about eight durations, in ns; 0: there were none. Safe
// for concurrent use; a lost duration does no harm.
type Average struct{ atomic.Int64 }

// Note takes in a duration.
func (a *Average) Note(d time.Duration) {
	old := a.Load()
	if old == 0 {
		old = int64(d)
	}
	a.Store(old + (int64(d)-old)/8)
}

package calls

import (
	"math/rand/v2"
	"time"
)

// Backoff is the delay between attempts that Redis did not answer: it doubles from 1 ms, and
// half of it is random, so that lockers that failed together do not come back together. Its
// zero value is ready.
type Backoff struct{ last time.Duration }

// Next is the next delay, at most a tenth of a lease and a second.
func (r *Backoff) Next(lease time.Duration) time.Duration {
	return r.Below(min(lease/10, time.Second))
}

// Below is the next delay, at most as long as given.
func (r *Backoff) Below(most time.Duration) time.Duration {
	const least = time.Millisecond
	r.last = min(max(2*r.last, least), max(most, least))
	return r.last/2 + rand.N(r.last/2)
}

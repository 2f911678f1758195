package watchdog

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestLeaseIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Lease{}), uintptr(56))
}

func TestThousandsOfLeasesFillTheirBatches(t *testing.T) {
	inBubble(t, slowly(20*time.Millisecond, Renewed), func(t *testing.T, r *harness) {
		const n = 20_000
		goroutines := runtime.NumGoroutine()
		holds := r.take(n, lease/3)
		for range 20 {
			require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+8)
			pass(lease / 6)
		}
		largest, tries := 0, map[*held]int{}
		for _, c := range r.made() {
			largest = max(largest, len(c.holds))
			for _, h := range c.holds {
				tries[h]++
			}
		}
		rounds := int(time.Since(r.began) / (lease / 3))
		require.Equal(t, 100, largest)
		require.LessOrEqual(t, len(r.made()), rounds*n/100*115/100, "batches of less than 87 on average")
		for _, h := range holds {
			require.True(t, h.Alive())
			require.InDelta(t, rounds, tries[h], 2)
		}
	})
}

func TestWhatIsDueSoonFollowsAtOnce(t *testing.T) {
	const took = 10 * time.Millisecond
	inBubble(t, slowly(took, Renewed), func(t *testing.T, r *harness) {
		holds := r.take(500, lease/30)
		pass(1)
		later := r.hold(Terms{})
		pass(lease/3 + lease/60)
		var at []time.Duration
		for i := 0; i < 500; i += 100 {
			at = append(at, r.starts(holds[i])[0]-lease/3)
		}
		require.Equal(t, []time.Duration{0, 0, took, took, 2 * took}, at)
		require.Equal(t, lease/3+lease/30+1, r.starts(later)[0])

		since := time.Since(r.began)
		own := r.hold(Terms{Lease: time.Second, Renew: true})
		pass(lease / 30)
		require.Equal(t, since+time.Second/3, r.starts(own)[0], "nothing else is due")
	}, Config[*held]{parallel: 2})
}

func TestHoldsOfOneInstantAreNotRenewedOneByOne(t *testing.T) {
	inBubble(t, answerNothing, func(t *testing.T, r *harness) {
		r.take(500, time.Second/10)
		pass(lease / 3)
		require.Len(t, r.made(), 5)
		pass(lease / 40) // since the first attempts: each batch has tried again, once or twice
		require.GreaterOrEqual(t, len(r.made()), 10)
		require.LessOrEqual(t, len(r.made()), 15, "a batch that failed tries again as one")
	}, Config[*held]{parallel: 20})
}

// A server that is away is asked a few times a second, however many leases there are, and soon has renewed all when it is
// back.
func TestG3_ManyLeasesTryAgainWithoutAStorm(t *testing.T) {
	const parallel, away, back = 8, lease / 3 * 2, lease - lease/10
	inBubble(t, func(c attempt) {
		time.Sleep(time.Millisecond)
		if time.Since(c.began) >= back {
			c.all(Renewed)
		}
	}, func(t *testing.T, r *harness) {
		holds := r.take(20_000, 0)
		pass(away)
		first := len(r.made())
		pass(back - away)
		tries, seconds := len(r.made())-first, int((back-away)/time.Second)
		require.GreaterOrEqual(t, tries, seconds)
		require.LessOrEqual(t, tries, 4*parallel*seconds)
		pass(2 * time.Second)
		for _, h := range holds {
			require.NoError(t, h.why)
			require.True(t, h.Deadline().After(r.began.Add(lease)))
		}
	}, Config[*held]{parallel: parallel})
}

// What is due for the first time does not wait for those that try again.
func TestG9_HoldsThatTryAgainDelayNoOther(t *testing.T) {
	inBubble(t, func(c attempt) {
		if c.holds[0].id == 500 {
			c.all(Renewed)
		}
	}, func(t *testing.T, r *harness) {
		r.take(500, 0)
		pass(lease / 3)
		other := r.hold(Terms{Anchor: r.began.Add(time.Second), Renew: true})
		pass(2 * time.Second)
		at := r.starts(other)
		require.Len(t, at, 1)
		require.LessOrEqual(t, at[0], lease/3+time.Second)
	}, Config[*held]{batch: 1})
}

// A server that answers others is not away: a hold that fails again and again delays the next attempt of no other.
func TestG9_FailuresBetweenAnswersDelayNobody(t *testing.T) {
	const short = 3 * time.Second
	const one, other = 0, 101 // ids
	inBubble(t, func(c attempt) {
		if id := c.holds[0].id; id != one && id != other {
			c.all(Renewed)
		}
	}, func(t *testing.T, r *harness) {
		terms := Terms{Lease: short, Renew: true}
		failing := r.hold(terms)
		for range 100 { // some are renewed each Lease/30
			r.hold(terms)
			pass(short / 300)
		}
		for len(r.starts(failing)) < 6 {
			pass(time.Millisecond)
		}
		terms.Anchor = time.Now().Add(-short / 3) // due at once
		h := r.hold(terms)
		require.Equal(t, other, h.id)
		pass(short / 40)
		require.Len(t, r.starts(h), 2, "tried again at its own time, before the other")
	}, Config[*held]{Lease: short, batch: 1, parallel: 5})
}

// A hold that waits before it tries again is not taken along by others that become due all the time.
func TestHoldsThatWaitToTryAgainAreNotTakenAlong(t *testing.T) {
	inBubble(t, answerNothing, func(t *testing.T, r *harness) {
		failed := r.hold(Terms{})
		pass(lease/3 - lease/150)
		for range 40 {
			r.hold(Terms{Lease: lease / 100, Renew: true})
			pass(lease / 300)
		}
		at := r.starts(failed)
		require.Greater(t, len(at), 2)
		require.GreaterOrEqual(t, at[1]-at[0], lease/120)
		require.GreaterOrEqual(t, at[2]-at[1], time.Second/3)
	})
}

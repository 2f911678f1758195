package exclusion

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// RunLinearizability records what several lockers do on few keys, with leases
// that are short and fixed and often run out, and then with leases that are
// renewed, and requires that both histories are linearizable.
func RunLinearizability(t *testing.T, d Kind) {
	for _, renewed := range []bool{false, true} {
		t.Run(fmt.Sprintf("renewed=%t", renewed), func(t *testing.T) {
			t.Parallel()
			least := map[happening]int{}
			if !testing.Short() { // a history in which little happens proves nothing
				least[wasReleased] = 100
				if !renewed {
					least[hasExpired] = 10
				}
			}
			h := recordHistory(t, d, renewed, 3*time.Second, least)
			result := h.check()
			require.NotEqual(t, porcupine.Illegal, result, "two holders")
			require.Equal(t, porcupine.Ok, result)
		})
	}
}

// RunLinearizabilityControl does the same with locks that have one fault each,
// which the check must find.
func RunLinearizabilityControl(t *testing.T, d Kind) {
	for name, bug := range seededBugs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// On a busy machine too little may happen in one history.
			for range 10 {
				if recordHistory(t, bug.in(d), false, 2*time.Second, nil).check() == porcupine.Illegal {
					return
				}
			}
			t.Fatal("all histories are linearizable")
		})
	}
}

const (
	historyLease = 200 * time.Millisecond
	historyKeys  = 3
)

// recordHistory has goroutines lock and unlock: four share each of two lockers,
// and four have one of their own, for that long, and then until so much has happened.
func recordHistory(t *testing.T, d Kind, renewed bool, length time.Duration, least map[happening]int) *history {
	s := redistest.Start(t)
	h := &history{began: time.Now(), counts: map[happening]int{}}
	o := Options{Lease: Long, Stale: historyLease, FirstLease: historyLease}
	if renewed {
		o.Lease = historyLease
	}
	const most = 12
	errs := make([]error, most)
	var actors sync.WaitGroup
	var shared holdfast.Locker
	for id := range most {
		a := &actor{history: h, id: id, renewed: renewed, locker: shared, alone: id >= 8}
		if a.alone || id%4 == 0 {
			a.locker = d.Open(t, s.Client(t), o)
			shared = a.locker
		}
		actors.Go(func() {
			for errs[id] == nil && (time.Since(h.began) < length || time.Since(h.began) < time.Minute && h.lacks(least)) {
				errs[id] = a.act()
			}
		})
	}
	actors.Wait()
	require.NoError(t, errors.Join(errs...))
	require.False(t, h.lacks(least), h.counts)

	// An attempt whose reply was late is undone, and may refuse others meanwhile,
	// which the model does not know. It leaves a tombstone.
	for i := range historyKeys {
		m := s.Do(t, "KEYS", "holdfast_gone:{"+historyKey(i)+"}:*")
		gone, err := m.AsStrSlice()
		require.NoError(t, err)
		if len(gone) > 0 {
			h.dropRefusals(historyKey(i))
		}
	}
	return h
}

func historyKey(i int) string { return fmt.Sprint("key", i) }

// actor is one goroutine of a run.
type actor struct {
	*history
	id      int
	locker  holdfast.Locker
	alone   bool // no other worker uses the locker
	renewed bool // leases are renewed; else fixed
}

// act takes one key, holds it for a while and gives it back, or tries to.
func (a *actor) act() error {
	key := historyKey(rand.IntN(historyKeys))
	var calls []holdfast.LockOption
	if !a.renewed {
		calls = []holdfast.LockOption{holdfast.FixedLease(historyLease)}
	}
	take, try := a.locker.Lock, rand.IntN(2) == 0
	if try {
		take = a.locker.TryLock
	}
	from := time.Now()
	l, err := take(context.Background(), key, calls...)
	to := time.Now()
	if err != nil {
		return a.failed(key, err, from, to)
	}
	id := a.add(a.id, event{key: key, what: wasAcquired}, from, to)

	hold, gone := rand.N(3*time.Millisecond), to.Add(historyLease)
	if rand.IntN(20) == 0 { // beyond the lease, if it is not renewed
		hold = historyLease + rand.N(historyLease/5)
	}
	time.Sleep(hold)
	from = time.Now()
	err = l.Unlock(context.Background())
	to = time.Now()
	switch {
	case err == nil:
		a.add(a.id, event{key, wasReleased, id}, from, to)
		return nil
	case errors.Is(err, holdfast.ErrLost):
		if a.renewed { // the last renewal may have arrived as late as this
			gone = to.Add(historyLease)
		}
		a.add(a.id, event{key, hasExpired, id}, l.Deadline(), gone.Add(historySlack))
		return nil
	case a.renewed && errors.Is(err, holdfast.ErrUnknown): // released now or at the deadline
		a.add(a.id, event{key, hasExpired, id}, from, to.Add(historyLease+historySlack))
		return nil
	}
	return err
}

// historySlack is by how much Redis' clock and this one may differ within a
// lease, and a renewal be late.
const historySlack = 50 * time.Millisecond

// failed records a refusal.
func (a *actor) failed(key string, err error, from, to time.Time) error {
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired):
		if a.alone {
			a.add(a.id, event{key: key, what: wasRefused}, from, to)
		}
		time.Sleep(rand.N(5 * time.Millisecond)) // leave the key to others
		return nil
	case errors.Is(err, holdfast.ErrUnknown):
		return nil
	}
	return err
}

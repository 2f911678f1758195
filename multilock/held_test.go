package multilock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

// A lock that another holds is no outage, even if a minority of the nodes is away or their
// number is even: TryLock says so, and Lock waits on, beyond WithMaxOutage, until a message
// wakes it.
func TestHeldByAnother(t *testing.T) {
	for _, c := range []struct{ nodes, away int }{{2, 0}, {3, 0}, {4, 0}, {3, 1}, {4, 1}, {5, 1}, {5, 2}} {
		t.Run(fmt.Sprintf("%d of %d away", c.away, c.nodes), func(t *testing.T) {
			inWorld(t, 2, c.nodes, func(w world) {
				const outage = 3 * time.Second
				x, y := w.open(0), w.open(1, holdfast.WithMaxOutage(outage))
				w.vote(x)
				for _, s := range w.Servers[c.nodes-c.away:] {
					s.Kill()
				}
				held := w.lock(x, "k")
				for range 20 {
					_, err := y.TryLock(w.Context(), "k")
					require.ErrorIs(w, err, holdfast.ErrNotAcquired)
					require.ErrorContains(w, err, `holdfast: lock "k": not acquired: `)
				}
				_, err := y.TryLockFor(w.Context(), "k", 3*outage)
				require.ErrorIs(w, err, holdfast.ErrNotAcquired)

				began := time.Now()
				time.AfterFunc(3*outage, func() { _ = held.Unlock(w.Context()) })
				w.lock(y, "k")
				require.InDelta(w, 3*outage, time.Since(began), float64(time.Second))
			})
		})
	}
}

package multilock_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/multilock"
)

// Clients that ask at once split the votes. Few rounds come to each grant, even while a minority is
// away.
func TestRivals_RoundsPerGrant(t *testing.T) {
	const most = 15.0
	for _, rivals := range []int{2, 16} {
		for _, away := range []int{0, 2} {
			t.Run(fmt.Sprintf("%d rivals, %d away", rivals, away), func(t *testing.T) {
				inWorld(t, rivals, 5, func(w world) {
					var lockers []*multilock.Locker
					for i := range rivals {
						lockers = append(lockers, w.open(i, multilock.WithoutRestartGuard()))
					}
					for _, s := range w.Servers[:away] {
						s.Kill()
					}
					const grants = 64
					var rounds atomic.Int64
					var all sync.WaitGroup
					for _, l := range lockers {
						all.Go(func() {
							last := ""
							for range grants / rivals {
								lease, err := l.Lock(w.Context(), "k")
								if err != nil {
									w.Error(err)
									return
								}
								rounds.Add(number(lease.Owner()) - number(last))
								last = lease.Owner()
								if err := lease.Unlock(w.Context()); err != nil {
									w.Error(err)
								}
								time.Sleep(time.Microsecond)
							}
						})
					}
					all.Wait()
					require.LessOrEqual(w, float64(rounds.Load())/grants, most)
					w.Logf("%.1f rounds per grant", float64(rounds.Load())/grants)
				})
			})
		}
	}
}

// number is that of an owner: each round of a client has the next one.
func number(owner string) int64 {
	_, digits, _ := strings.Cut(owner, ":")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

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

package rlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestG4_ProcessesTakeTurns(t *testing.T) {
	const lockers, rounds = 4, 25
	s := redistest.Start(t)
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		last    string
		tenures [lockers]int
		all     int
	)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range lockers {
		l := userLocker(t, s.Client(t), holdfast.WithLocalHandover(2*time.Millisecond))
		tell := func(owner string) {
			mu.Lock()
			defer mu.Unlock()
			if owner != last {
				last = owner
				tenures[i]++
				all++
			}
			if all == lockers*rounds {
				stop()
			}
		}
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					e := locktest.Lock(t, l, context.Background(), "hot")
					tell(e.Owner())
					_ = e.Unlock(context.Background())
				}
			})
		}
	}
	wg.Wait()
	for i, n := range tenures {
		require.Greater(t, n, rounds/4, "locker %d of %v", i, tenures)
	}
}

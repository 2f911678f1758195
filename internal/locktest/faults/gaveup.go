package faults

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/holdfast-go/holdfast/internal/locktest"
)

func init() {
	registerSolo("F10_CallersGiveUpWhileRedisHangs", testCallersGiveUp).real = true
}

// Callers with short time give up, and come again with other keys, while Redis hangs.
// Neither goroutines nor what is left to be undone grow with the number of their calls.
// When Redis goes on, all of it is undone and locks are had again.
func testCallersGiveUp(t *testing.T, d Kind) {
	const callers, times = 50, 40
	r := newHarness(t, d, Options{Lease: Long})
	require.NoError(t, Lock(t, r.Locker, Bounded(t), "warm").Unlock(Bounded(t)))
	before := runtime.NumGoroutine()
	r.Server.Pause()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range times {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				_, err := r.Locker.Lock(ctx, fmt.Sprint("k", i, "-", n))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				cancel()
			}
		})
	}
	all.Wait()
	// Some end late: for each node, those of 256 attempts that wait to be undone; and those of each caller's last call.
	require.Less(t, runtime.NumGoroutine()-before, 256*max(1, d.Nodes)+6*callers, "goroutines after %d calls", callers*times)
	r.Server.Resume()
	undone := map[string]bool{}
	Await(t, func() bool { // tombstones stay for a while
		held := false
		for _, k := range r.Keys() {
			stone := strings.HasPrefix(k, "holdfast_gone:")
			held = held || !stone && strings.HasPrefix(k, "k")
			if stone {
				undone[k] = true
			}
		}
		return !held && (len(undone) > 0 || d.Nodes > 0) // where nodes keep their order, undoing leaves none
	})
	require.Less(t, len(undone), callers*times/4, "tombstones")
	require.NoError(t, Lock(t, r.Locker, Bounded(t), "k0-0").Unlock(Bounded(t)))
	r.Traceless("k0-0")
}

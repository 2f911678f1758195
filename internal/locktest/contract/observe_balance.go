package contract

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// Whatever happens to calls and leases, each entry that began ends once.
func observeBalance(c *harness) {
	const waiters = 6
	s := c.observed(Options{Lease: time.Second, MaxWaiters: waiters})
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	keys := []string{"a", "b", "c"}
	var all sync.WaitGroup
	often := func(do func(n int, key string)) {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				do(n, keys[rand.N(len(keys))])
			}
		})
	}
	end := func(l *holdfast.Lease, err error) {
		if err == nil {
			time.Sleep(rand.N(2 * time.Millisecond)) // a section
			_ = l.Unlock(ctx)
		}
	}
	for range 12 {
		often(func(n int, key string) {
			short, cancel := context.WithTimeout(ctx, rand.N(5*time.Millisecond))
			defer cancel()
			switch n % 6 {
			case 0:
				end(c.Locker.TryLock(ctx, key))
			case 1:
				end(c.Locker.Lock(short, key)) // often gives up, perhaps just when it gets the key
			case 2:
				end(c.Locker.TryLockFor(ctx, key, rand.N(5*time.Millisecond), holdfast.MaxHold(time.Millisecond)))
			default:
				_ = c.Locker.Do(ctx, key, func(ctx context.Context) error {
					end(c.Locker.Lock(ctx, key))
					return nil
				})
			}
		})
	}
	often(func(_ int, key string) { end(c.Other.Lock(ctx, key)) })
	often(func(_ int, key string) {
		time.Sleep(pause) // else nobody would hold a key for long
		_, _ = c.Other.ForceUnlock(ctx, key)
	})
	often(func(int, string) {
		time.Sleep(5 * pause) // likewise
		c.Proxy.Cut()
	})
	Await(c.T, func() bool {
		return len(of[holdfast.AcquiredEvent](s)) > 100 && len(of[holdfast.LostEvent](s)) > 0
	})
	_ = c.Locker.Close() // in the middle of it
	stop()
	all.Wait()

	d := holdfast.DroppedEvent{}
	for _, one := range of[holdfast.DroppedEvent](s) {
		d.Acquired, d.Released, d.Lost = d.Acquired+one.Acquired, d.Released+one.Released, d.Lost+one.Lost
	}
	acquired, released := of[holdfast.AcquiredEvent](s), of[holdfast.ReleasedEvent](s)
	lost := len(of[holdfast.LostEvent](s))
	require.Equal(c.T, len(acquired)+d.Acquired, len(released)+d.Released+lost+d.Lost)
	if d != (holdfast.DroppedEvent{}) {
		return
	}
	held := map[string]int{} // by key
	for _, e := range acquired {
		held[e.Key]++
	}
	for _, e := range released {
		held[e.Key]--
	}
	for _, e := range of[holdfast.LostEvent](s) {
		held[e.Key]--
	}
	require.Equal(c.T, map[string]int{"a": 0, "b": 0, "c": 0}, held)
	queue := map[string]int{}
	for _, e := range of[holdfast.QueueEvent](s) {
		queue[e.Key] = e.Waiting
		if !c.Kind.Fair { // there, one whose grant does not stand waits again beside those that came meanwhile
			require.LessOrEqual(c.T, e.Waiting, waiters)
		}
	}
	for key, n := range queue {
		require.Zero(c.T, n, key)
	}
}

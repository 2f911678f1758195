package contract

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// unsteady are locks that are soon given on when a cut has swallowed a grant.
var unsteady = locktest.Options{Lease: time.Second, MaxWaiters: 6, WaiterTTL: time.Second, GrantLease: time.Second}

// Whatever happens to calls and leases, each entry that began ends once.
func observeBalance(c *harness) {
	s := c.observed(unsteady)
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	keys := []string{"a", "b", "c"}
	var all sync.WaitGroup
	often := func(do func(n int, key string)) {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				do(n, keys[rand.N(len(keys))])
				time.Sleep(rand.N(100 * time.Microsecond)) // calls that fail at once take no time, as a bubble sees it
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
	acquired := func() int { return len(of[holdfast.AcquiredEvent](s)) }
	after := func(entries int, fault func(key string)) { // more of them, so that a slow machine gets on as well
		often(func(_ int, key string) {
			for enough := acquired() + entries; acquired() < enough && ctx.Err() == nil; {
				time.Sleep(pause)
			}
			fault(key)
		})
	}
	after(1, func(key string) { _, _ = c.Other.ForceUnlock(ctx, key) })
	after(20, func(string) { c.Proxy.Cut() })
	locktest.Await(c.T, func() bool { return acquired() > 100 && len(of[holdfast.LostEvent](s)) > 0 })
	_ = c.Locker.Close() // in the middle of it
	stop()
	all.Wait()

	d := holdfast.DroppedEvent{}
	for _, one := range of[holdfast.DroppedEvent](s) {
		d.Acquired, d.Released, d.Lost = d.Acquired+one.Acquired, d.Released+one.Released, d.Lost+one.Lost
	}
	released, lost := of[holdfast.ReleasedEvent](s), of[holdfast.LostEvent](s)
	require.Equal(c.T, acquired()+d.Acquired, len(released)+d.Released+len(lost)+d.Lost)
	if d != (holdfast.DroppedEvent{}) {
		return
	}
	held := map[string]int{} // by key
	for _, e := range of[holdfast.AcquiredEvent](s) {
		held[e.Key]++
	}
	for _, e := range released {
		held[e.Key]--
	}
	for _, e := range lost {
		held[e.Key]--
	}
	require.Equal(c.T, map[string]int{"a": 0, "b": 0, "c": 0}, held)
	waiters := map[string]int{}
	for _, e := range of[holdfast.WaitersEvent](s) {
		waiters[e.Key] = e.Waiting
		if !c.Kind.Fair { // there, one whose grant does not stand waits again beside those that came meanwhile
			require.LessOrEqual(c.T, e.Waiting, unsteady.MaxWaiters)
		}
	}
	for key, n := range waiters {
		require.Zero(c.T, n, key)
	}
}

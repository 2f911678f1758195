package contract

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

var observeCases = []testCase{
	{"Observe_Call", servers, defaults, observeCall},
	{"Observe_Reentry", servers, defaults, observeReentry},
	{"Observe_HandoverAndGrant", servers | ofOneHolder, tenured, observeHandover},
	{"Observe_WokenWaiter", servers | ofOneHolder, defaults, observeWoken},
	{"Observe_Failed", servers | ofOneHolder, defaults, observeFailed},
	{"Observe_GaveUp", servers, defaults, observeGaveUp},
	{"Observe_Lost", servers, defaults, observeLost},
	{"Observe_Renewed", servers, defaults, observeRenewed},
	{"Observe_Outage", servers, defaults, observeOutage},
	{"Observe_OutageOfAHolder", servers, defaults, observeOutageHeld},
	{"Observe_OutageOfANestedCall", servers, defaults, observeOutageNested},
	{"Observe_Close", servers | ofOneHolder, defaults, observeClose},
	{"Observe_Panic", servers, defaults, observePanic},
	{"Observe_Blocked", servers | ofOneHolder, defaults, observeBlocked},
	{"Observe_LocksItself", servers | ofOneHolder, defaults, observeLocks},
	{"Observe_Balance", servers, unsteady, observeBalance},
}

// seen are the events that an observer was told.
type seen struct {
	mu  sync.Mutex
	all []any // guarded by mu
}

func note[E any](s *seen) func(E) {
	return func(e E) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, e)
	}
}

func (s *seen) observer() *holdfast.Observer {
	return &holdfast.Observer{
		Acquired: note[holdfast.AcquiredEvent](s), Failed: note[holdfast.FailedEvent](s), Released: note[holdfast.ReleasedEvent](s),
		Lost: note[holdfast.LostEvent](s), Renewed: note[holdfast.RenewedEvent](s), Woken: note[holdfast.WokenEvent](s),
		Waiters: note[holdfast.WaitersEvent](s), OutageBegan: note[holdfast.OutageBeganEvent](s),
		OutageEnded: note[holdfast.OutageEndedEvent](s), Dropped: note[holdfast.DroppedEvent](s),
	}
}

// of are the events of a kind.
func of[E any](s *seen) (all []E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		if e, is := e.(E); is {
			all = append(all, e)
		}
	}
	return all
}

// await waits for n events of a kind, and returns them.
func await[E any](c *harness, s *seen, n int) (all []E) {
	c.T.Helper()
	locktest.Await(c.T, func() bool { all = of[E](s); return len(all) >= n }, "%T", all)
	return all
}

// observed makes c.Locker one that tells s.
func (c *harness) observed(o locktest.Options) (s *seen) {
	c.T.Helper()
	s = &seen{}
	o.Observer = s.observer()
	c.Locker = c.Kind.Open(c.T, c.Client, o)
	c.commands()
	return s
}

// told closes the locker and returns all events in short, but those of the kinds without.
func (c *harness) told(s *seen, without ...string) (all []string) {
	c.T.Helper()
	require.NoError(c.T, c.Locker.Close())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		line := ""
		switch e := e.(type) {
		case holdfast.AcquiredEvent:
			line = "acquired " + e.Key + " by " + string(e.How)
		case holdfast.ReleasedEvent:
			line = "released " + e.Key
		case holdfast.LostEvent:
			line = "lost " + e.Key
		case holdfast.FailedEvent:
			line = "failed " + e.Key
		case holdfast.WaitersEvent:
			line = fmt.Sprintf("waiters %s %d", e.Key, e.Waiting)
		default:
			line = fmt.Sprintf("%T", e)
		}
		if !slices.ContainsFunc(without, func(w string) bool { return strings.HasPrefix(line, w) }) {
			all = append(all, line)
		}
	}
	return all
}

// pause is how long a case lets a wait or a hold last, for its event to tell.
const pause = 20 * time.Millisecond

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

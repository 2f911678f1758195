package semaphore_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/semaphore"
)

// world is a server in virtual time, of which each locker has a client of its own.
type world struct {
	t      *testing.T
	net    *sim.Network
	server *sim.Server
}

// inVirtualTime runs a test in a bubble. A request or a reply takes 20 µs.
func inVirtualTime(t *testing.T, run func(t *testing.T, w *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: &sim.Network{Trip: 20 * time.Microsecond}}
		w.server = sim.Start(t, w.net)
		run(t, w)
	})
}

func (w *world) open(n int, opts ...holdfast.Option) *semaphore.Locker {
	w.t.Helper()
	l, err := semaphore.New(w.server.Client(w.t), n, opts...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = l.Close() })
	return l
}

// holders counts how many hold at once.
type holders struct {
	now, most atomic.Int32
}

func (h *holders) hold(d time.Duration) {
	n := h.now.Add(1)
	for most := h.most.Load(); n > most && !h.most.CompareAndSwap(most, n); most = h.most.Load() {
	}
	time.Sleep(d)
	h.now.Add(-1)
}

// Callers of several processes use all permits, and no more.
func TestG1_SixtyFourCallersOnEightPermits(t *testing.T) {
	for name, handover := range map[string]time.Duration{"hand-over": holdfast.DefaultLocalHandover, "no hand-over": 0} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, w *world) {
				var h holders
				var all sync.WaitGroup
				for p := range 4 {
					l := w.open(8, holdfast.WithLocalHandover(handover))
					for range 16 {
						all.Go(func() {
							for range 5 {
								require.NoError(t, l.Do(context.Background(), "k", func(context.Context) error {
									h.hold(time.Duration(1+p) * time.Millisecond)
									return nil
								}))
							}
						})
					}
				}
				all.Wait()
				require.EqualValues(t, 8, h.most.Load())
			})
		})
	}
}

// loadScripts has the server know all scripts, so that a call takes one round trip.
func (w *world) loadScripts() {
	for _, text := range scripts.Scripts() {
		w.server.Do(w.t, "SCRIPT", "LOAD", text)
	}
}

// Callers that find free permits take them side by side, not one after the other.
func TestFreePermitsAreTakenAtOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		w.net.Trip = 10 * time.Millisecond
		w.loadScripts()
		l := w.open(8)
		var held atomic.Int32
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				lease := locktest.Lock(t, l, context.Background(), "k")
				held.Add(1)
				time.Sleep(time.Minute)
				require.NoError(t, lease.Unlock(context.Background()))
			})
		}
		time.Sleep(70 * time.Millisecond) // three round trips and a half
		require.EqualValues(t, 8, held.Load())
		all.Wait()
	})
}

// N releases serve N waiters, however the waiters are spread over processes.
func TestG4_ReleasesWakeAsManyWaiters(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		holder, ctx := w.open(6), context.Background()
		var leases []*holdfast.Lease
		for range 6 {
			leases = append(leases, locktest.Lock(t, holder, ctx, "k"))
		}
		got := make(chan *holdfast.Lease, 20)
		for _, waiters := range []int{1, 3, 6} {
			l := w.open(6)
			for range waiters {
				go func() { got <- locktest.Lock(t, l, ctx, "k") }()
			}
		}
		time.Sleep(time.Second)
		require.Empty(t, got)
		for _, l := range leases[:4] {
			go func() { _ = l.Unlock(ctx) }()
		}
		time.Sleep(100 * time.Millisecond)
		require.Len(t, got, 4)
		require.NoError(t, leases[4].Unlock(ctx))
		require.NoError(t, leases[5].Unlock(ctx))
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			require.NotEmpty(t, got)
			require.NoError(t, (<-got).Unlock(ctx))
		}
	})
}

// N permits that are given back at once serve N waiters of one process in about log2 N round trips,
// whatever each of them asks for.
func TestG4_ReleasesServeACrowd(t *testing.T) {
	for name, opts := range map[string][]holdfast.LockOption{"plain": nil, "labels": {holdfast.Label("crowd")}} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, w *world) {
				w.net.Trip = 10 * time.Millisecond // a round trip takes 20
				w.loadScripts()
				const n = 60
				holder, waiting, ctx := w.open(n), w.open(n), context.Background()
				var leases []*holdfast.Lease
				for range n {
					leases = append(leases, locktest.Lock(t, holder, ctx, "k"))
				}
				var served atomic.Int32
				var all sync.WaitGroup
				for range 2 * n {
					all.Go(func() {
						lease := locktest.Lock(t, waiting, ctx, "k", opts...)
						served.Add(1)
						time.Sleep(time.Minute)
						require.NoError(t, lease.Unlock(ctx))
					})
				}
				time.Sleep(time.Second)
				require.Zero(t, served.Load())
				for _, l := range leases {
					go func() { _ = l.Unlock(ctx) }()
				}
				time.Sleep(300 * time.Millisecond)
				require.EqualValues(t, n, served.Load())
				all.Wait()
				require.Empty(t, w.server.Redis().Keys())
			})
		})
	}
}

// Permits that are given back one after another, a few in each round trip, cost few attempts in vain.
func TestG4_FewAttemptsAreInVain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		w.net.Trip = 5 * time.Millisecond
		w.loadScripts()
		const n = 60
		var asked atomic.Int32
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr()) // a round trip through it takes 20
		proxy.OnRequest(func(cmd []string) redistest.Verdict {
			if locktest.Is("acquire")(cmd) {
				keys, err := strconv.Atoi(cmd[2])
				require.NoError(t, err)
				asked.Add(int32(keys / 3))
			}
			return redistest.Pass
		})
		waiting, err := semaphore.New(w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), n)
		require.NoError(t, err)
		holder, ctx := w.open(n), context.Background()
		var leases []*holdfast.Lease
		for range n {
			leases = append(leases, locktest.Lock(t, holder, ctx, "k"))
		}
		got := make(chan error, 2*n)
		for range 2 * n {
			go func() { got <- locktest.ErrOf(waiting.Lock(ctx, "k")) }()
		}
		time.Sleep(time.Second)
		require.Empty(t, got)
		asked.Store(0)
		for _, l := range leases {
			go func() { _ = l.Unlock(ctx) }()
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.Len(t, got, n)
		require.Less(t, asked.Load(), int32(3*n))
		require.NoError(t, waiting.Close())
	})
}

// Attempts side by side whose replies are lost leave no permit taken.
func TestF7_AttemptsSideBySideAreUndone(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		w.net.Trip = time.Millisecond
		w.loadScripts()
		const n = 16
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr())
		waiting, err := semaphore.New(w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), n)
		require.NoError(t, err)
		holder, ctx := w.open(n), context.Background()
		var leases []*holdfast.Lease
		for range n {
			leases = append(leases, locktest.Lock(t, holder, ctx, "k"))
		}
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				require.NoError(t, locktest.Lock(t, waiting, ctx, "k", holdfast.FixedLease(time.Hour)).Unlock(ctx))
			})
		}
		time.Sleep(time.Second)
		lost := proxy.SwallowReply(4, locktest.Is("acquire")) // the first two succeed, one after the other
		for _, l := range leases {
			go func() { _ = l.Unlock(ctx) }()
		}
		<-lost
		all.Wait()
		time.Sleep(time.Minute)
		s, err := holder.Inspect(ctx, "k")
		require.NoError(t, err)
		require.Empty(t, s.Holders)
		require.NoError(t, waiting.Close())
	})
}

// A burst that once took all permits is over soon, although callers keep coming: they need a
// quarter of the permits, but more of them come than one after another could take.
func TestG4_ABurstIsOver(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		w.net.Trip = time.Millisecond // a round trip takes 2, in which two callers come
		w.loadScripts()
		l, ctx := w.open(200), context.Background()
		var all sync.WaitGroup
		var longest time.Duration
		for i := range 2000 {
			callers := 1
			if i == 300 {
				callers = 250
			}
			for range callers {
				all.Go(func() {
					began := time.Now()
					lease := locktest.Lock(t, l, ctx, "k")
					if i == 1999 {
						longest = time.Since(began)
					}
					time.Sleep(50 * time.Millisecond)
					require.NoError(t, lease.Unlock(ctx))
				})
			}
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		require.Less(t, longest, 10*time.Millisecond)
	})
}

// Each process that waits gets permits again and again, whoever has them.
func TestG4_NoProcessStarves(t *testing.T) {
	for _, n := range []int{1, 3, 8} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, w *world) {
				const processes = 4
				var longest [processes]time.Duration
				var served [processes]int
				var mu sync.Mutex
				var all sync.WaitGroup
				end := time.Now().Add(time.Second)
				for p := range processes {
					l, last := w.open(n), time.Now()
					for range 12 {
						all.Go(func() {
							for time.Now().Before(end) {
								lease := locktest.Lock(t, l, context.Background(), "k")
								mu.Lock()
								longest[p], last = max(longest[p], time.Since(last)), time.Now()
								served[p]++
								mu.Unlock()
								time.Sleep(time.Duration(1+p) * time.Millisecond)
								require.NoError(t, lease.Unlock(context.Background()))
							}
						})
					}
				}
				all.Wait()
				t.Log(n, served, longest)
				for p := range processes {
					require.Less(t, longest[p], 200*time.Millisecond, "%v of %v", longest, served)
					require.Greater(t, served[p], slices.Max(served[:])/10, served)
				}
			})
		})
	}
}

// A process that has permits and waiters, beside one that has permits and listens but wants no
// more, uses what it gives back.
func TestG4_IdleListenersDelayNobody(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		idle, busy, ctx := w.open(2), w.open(2), context.Background()
		one := locktest.Lock(t, idle, ctx, "k")
		two := locktest.Lock(t, idle, ctx, "k")
		leaves, cancel := context.WithCancel(ctx)
		gone := locktest.Go(func() error { return locktest.ErrOf(idle.Lock(leaves, "k")) })
		defer func() { cancel(); <-gone }()
		time.Sleep(time.Second)
		require.NoError(t, one.Unlock(ctx)) // its waiter takes that
		var cycles atomic.Int32
		stop := time.Now().Add(time.Second)
		require.NoError(t, two.Unlock(ctx))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for time.Now().Before(stop) {
					if lease, err := busy.TryLockFor(ctx, "k", 2*time.Second); err == nil {
						cycles.Add(1)
						time.Sleep(20 * time.Millisecond) // longer than a tenure
						require.NoError(t, lease.Unlock(ctx))
					}
				}
			})
		}
		all.Wait()
		require.Greater(t, cycles.Load(), int32(25))
	})
}

// The permit of a crashed holder is free within its lease, for a waiter and for one that asks then.
func TestG4_CrashedHoldersFreeTheirPermits(t *testing.T) {
	for name, waits := range map[string]bool{"a waiter": true, "who asks next": false} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, w *world) {
				const lease = 6 * time.Second
				l, ctx, began := w.open(2, holdfast.WithLease(lease)), context.Background(), time.Now()
				mine := locktest.Lock(t, l, ctx, "k")
				node := scripts.NewPermits(scripts.NewNode(w.server.Client(t)), 2)
				_, err := node.Acquire(ctx, "k", "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:01", lease) // and nothing more
				require.NoError(t, err)
				if !waits {
					time.Sleep(lease - 10*time.Millisecond)
					require.ErrorIs(t, locktest.ErrOf(l.TryLock(ctx, "k")), holdfast.ErrNotAcquired)
					time.Sleep(20 * time.Millisecond)
				}
				next := locktest.Lock(t, l, ctx, "k")
				require.InDelta(t, lease, time.Since(began), float64(100*time.Millisecond))
				require.NoError(t, mine.Err(), "it is renewed")
				require.NoError(t, next.Unlock(ctx))
				require.NoError(t, mine.Unlock(ctx))
				require.Empty(t, w.server.Redis().Keys())
			})
		})
	}
}

// A holder that is paused for longer than its lease has lost it, and its late renewal changes nothing.
func TestF2_PausedHolder(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr())
		client := w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })
		paused, err := semaphore.New(client, 2, holdfast.WithLease(3*time.Second))
		require.NoError(t, err)
		defer paused.Close()
		other, ctx := w.open(2, holdfast.WithLease(3*time.Second)), context.Background()
		first, second := locktest.Lock(t, paused, ctx, "k"), locktest.Lock(t, other, ctx, "k")
		hook, held := locktest.Holding("renew")
		proxy.OnRequest(hook)
		<-held
		<-first.Done()
		require.ErrorIs(t, first.Err(), holdfast.ErrLost)
		next := locktest.Lock(t, other, ctx, "k")
		proxy.OnRequest(nil)
		proxy.Release() // the late renewal
		time.Sleep(time.Second)
		s, err := other.Inspect(ctx, "k")
		require.NoError(t, err)
		require.Len(t, s.Holders, 2)
		require.ErrorIs(t, first.Unlock(ctx), holdfast.ErrLost)
		for _, l := range []*holdfast.Lease{second, next} {
			require.NoError(t, l.Err())
			require.NoError(t, l.Unlock(ctx))
		}
	})
}

// More permits let as many waiters go on at once; fewer take none away.
func TestResize_InUse(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		a, b, ctx := w.open(2), w.open(2), context.Background()
		got := make(chan *holdfast.Lease, 20)
		for range 6 {
			go func() { got <- locktest.Lock(t, a, ctx, "k") }()
			go func() { got <- locktest.Lock(t, b, ctx, "k") }()
		}
		time.Sleep(time.Second)
		require.Len(t, got, 2)
		require.NoError(t, a.Resize(ctx, "k", 7))
		time.Sleep(100 * time.Millisecond)
		require.Len(t, got, 7)
		require.NoError(t, b.Resize(ctx, "k", 3))
		for range 4 {
			require.NoError(t, (<-got).Unlock(ctx))
			time.Sleep(100 * time.Millisecond)
		}
		s, err := a.Inspect(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, 3, s.Permits)
		require.Len(t, s.Holders, 3+len(got)-3)
		require.Len(t, got, 3)
		for range 8 {
			require.NoError(t, (<-got).Unlock(ctx))
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// A nested call re-enters by the bound context; a call without it takes another permit.
func TestNested(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx := w.open(2), context.Background()
		outer := locktest.Lock(t, l, ctx, "k", holdfast.Label("outer"))
		inner := locktest.Lock(t, l, outer.Bind(ctx), "k")
		second := locktest.Lock(t, l, ctx, "k")
		require.ErrorIs(t, locktest.ErrOf(l.TryLock(ctx, "k")), holdfast.ErrNotAcquired)
		s, err := l.Inspect(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, 2, s.Permits)
		require.Equal(t, []any{2, "outer", 2, 1}, []any{len(s.Holders), s.Holders[0].Label, s.Holders[0].Entries, s.Holders[1].Entries})
		require.Equal(t, []string{outer.Owner(), second.Owner()}, []string{s.Holders[0].Owner, s.Holders[1].Owner})
		require.Regexp(t, "^2 of 2 permits taken, .* until one ends, 0 waiting here$", s.String())
		require.Zero(t, outer.Fence())
		require.NoError(t, inner.Unlock(ctx))
		require.NoError(t, outer.Unlock(ctx))
		held := 0
		for status, err := range l.Locks(ctx, "") {
			require.NoError(t, err)
			require.Equal(t, "k", status.Key)
			held += len(status.Holders)
		}
		require.Equal(t, 1, held)
		forced, err := l.ForceUnlock(ctx, "k")
		require.NoError(t, err)
		require.True(t, forced)
		require.ErrorIs(t, second.Err(), holdfast.ErrLost)
		require.Empty(t, w.server.Redis().Keys())
	})
}

// Waiters that queue here go from hand to hand in memory, each permit in its own hands.
func TestHandover_OfSeveralPermits(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx := w.open(3), context.Background()
		var all sync.WaitGroup
		var h holders
		owners := sync.Map{}
		for range 30 {
			all.Go(func() {
				for range 50 {
					lease := locktest.Lock(t, l, ctx, "k")
					owners.Store(lease.Owner(), true)
					h.hold(10 * time.Microsecond)
					require.NoError(t, lease.Unlock(ctx))
				}
			})
		}
		all.Wait()
		n := 0
		owners.Range(func(any, any) bool { n++; return true })
		require.Less(t, n, 100, "holds in Redis, of 1500 leases")
		require.EqualValues(t, 3, h.most.Load())
	})
}

// LockAll takes a permit of each, beside locks of other kinds.
func TestLockAll(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx := w.open(2), context.Background()
		first, err := multilock.LockAll(ctx, multilock.Keys(l, "a", "b"))
		require.NoError(t, err)
		second, err := multilock.LockAll(ctx, multilock.Keys(l, "a", "b"))
		require.NoError(t, err)
		_, err = multilock.TryLockAllFor(ctx, multilock.Keys(l, "a", "b"), time.Second)
		require.ErrorIs(t, err, holdfast.ErrNotAcquired)
		require.NoError(t, first.Unlock(ctx))
		require.NoError(t, second.Unlock(ctx))
		require.Empty(t, w.server.Redis().Keys())
	})
}

// Redis loses its memory: holders are told at their next renewal, and others get permits.
func TestF20_RestartWithoutData(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx := w.open(2, holdfast.WithLease(3*time.Second)), context.Background()
		lease := locktest.Lock(t, l, ctx, "k")
		w.server.Do(t, "FLUSHALL")
		<-lease.Done()
		require.ErrorIs(t, lease.Err(), holdfast.ErrLost)
		for range 2 {
			locktest.Lock(t, l, ctx, "k")
		}
	})
}

// The server's clock jumps: ahead, leases end there, and holders are told; back, nothing ends early.
func TestF34_ClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Minute, -time.Minute} {
		t.Run(fmt.Sprint(jump), func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, w *world) {
				l, ctx := w.open(1, holdfast.WithLease(6*time.Second)), context.Background()
				lease := locktest.Lock(t, l, ctx, "k")
				w.server.JumpClock(jump)
				time.Sleep(5 * time.Second)
				if jump > 0 {
					require.ErrorIs(t, lease.Err(), holdfast.ErrLost)
				} else {
					require.NoError(t, lease.Unlock(ctx))
				}
				require.NoError(t, locktest.Lock(t, l, ctx, "k").Unlock(ctx))
			})
		})
	}
}

// An acquire that arrives after its caller has given it up takes no permit.
func TestF7_LateAcquire(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr())
		client := w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })
		late, err := semaphore.New(client, 1)
		require.NoError(t, err)
		defer late.Close()
		other, ctx := w.open(1), context.Background()
		hook, held := locktest.Holding("acquire")
		proxy.OnRequest(hook)
		leaves, cancel := context.WithCancel(ctx)
		gone := locktest.Go(func() error { return locktest.ErrOf(late.Lock(leaves, "k")) })
		<-held
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		proxy.OnRequest(nil)
		proxy.Release()
		time.Sleep(10 * time.Second)
		lease, err := other.TryLock(ctx, "k")
		require.NoError(t, err)
		require.NoError(t, lease.Unlock(ctx))
	})
}

// A hold of this locker turns out to be lost, of which no message tells: its waiters try at once.
func TestG4_WaitersTryAfterALoss(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx, began := w.open(1), context.Background(), time.Now()
		lease := locktest.Lock(t, l, ctx, "k")
		got := make(chan *holdfast.Lease, 1)
		go func() { got <- locktest.Lock(t, l, ctx, "k") }()
		time.Sleep(time.Second)
		w.server.Do(t, "FLUSHALL")
		next := <-got
		require.ErrorIs(t, lease.Err(), holdfast.ErrLost)
		require.Less(t, time.Since(began), holdfast.DefaultLease/2, "the renewal finds out, after a third of the lease")
		require.NoError(t, next.Unlock(ctx))
	})
}

// A user that may not subscribe hears of no release; those of its own process serve its waiters.
func TestG4_OwnReleasesNeedNoMessage(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr())
		proxy.OnRequest(func(cmd []string) redistest.Verdict {
			if locktest.Is("subscribe")(cmd) {
				return redistest.Hold
			}
			return redistest.Pass
		})
		client := w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })
		l, err := semaphore.New(client, 2, holdfast.WithLocalHandover(0))
		require.NoError(t, err)
		defer l.Close()
		ctx := context.Background()
		one, two := locktest.Lock(t, l, ctx, "k"), locktest.Lock(t, l, ctx, "k")
		got := make(chan *holdfast.Lease, 2)
		for range 2 {
			go func() { got <- locktest.Lock(t, l, ctx, "k") }()
		}
		time.Sleep(20*time.Second + 500*time.Millisecond) // between two probes
		require.Empty(t, got)
		require.NoError(t, one.Unlock(ctx))
		time.Sleep(10 * time.Millisecond)
		require.Len(t, got, 1)
		require.NoError(t, two.Unlock(ctx))
		time.Sleep(10 * time.Millisecond)
		require.Len(t, got, 2)
		require.NoError(t, (<-got).Unlock(ctx))
		require.NoError(t, (<-got).Unlock(ctx))
	})
}

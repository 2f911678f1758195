package multilock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

// sets are lockers of every lock kind in virtual time: two of one Redis each, and one of three.
type sets struct {
	world
	plain  *rlock.Locker
	queued *fair.Locker
	quorum *multilock.Locker
}

func withSets(t *testing.T, test func(s sets)) {
	synctest.Test(t, func(t *testing.T) {
		s := sets{world: world{t, sim.NewWorld(t, 1, 2, 5)}}
		clients := s.Clients(0)
		s.plain, s.queued = s.rlock(clients[0]), s.fair(clients[1])
		s.quorum = s.another(0)
		s.vote(s.quorum)
		test(s)
	})
}

// another opens a locker of the quorum.
func (s sets) another(process int) *multilock.Locker {
	s.Helper()
	return s.on(s.Clients(process)[2:])
}

// keys are keys of all three, in any order.
func (s sets) keys(keys ...string) (all multilock.KeySet) {
	parts := []multilock.KeySet{
		multilock.Keys(s.plain, keys...).OrderName("plain"),
		multilock.Keys(s.queued, keys...).OrderName("queued"),
		multilock.Keys(s.quorum, keys...).OrderName("quorum"),
	}
	rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, p := range parts {
		all = all.And(p)
	}
	return all
}

// free requires that all keys are free, once all is done that calls have left to the background.
func (s sets) free(keys ...string) {
	s.Helper()
	settle()
	for _, k := range keys {
		require.Equal(s, []string{"", "", "", "", ""}, s.owners(k), k)
	}
}

// A set holds each of its keys once, in one order, until Unlock.
func TestLockAll_TakesAllOfEveryKind(t *testing.T) {
	withSets(t, func(s sets) {
		set := s.lockAll(s.keys("b", "a", "b"))
		require.Equal(s, []string{"a", "b", "a", "b", "a", "b"}, set.Keys())
		require.Len(s, set.Fences(), 6)
		require.NoError(s, set.Err())
		require.Positive(s, time.Until(set.Deadline()))
		settle()
		for _, key := range []string{"a", "b"} {
			require.NotContains(s, s.owners(key), "")
		}
		s.reenters(set, s.keys("a"))
		require.NoError(s, set.Err())
		require.NoError(s, set.Unlock(s.Context()))
		<-set.Done()
		require.ErrorIs(s, set.Err(), holdfast.ErrReleased)
		require.ErrorIs(s, set.Unlock(s.Context()), holdfast.ErrReleased)
		s.free("a", "b")
	})
}

// If one key cannot be acquired, none is held.
func TestLockAll_AllOrNothing(t *testing.T) {
	withSets(t, func(s sets) {
		their := locktest.Must(s.quorum.Lock(s.Context(), "b"))(s) // the last in the order
		locktest.RequireSentinel(s, locktest.ErrOf(multilock.TryLockAll(s.Context(), s.keys("a", "b"))), holdfast.ErrNotAcquired, `holdfast: lock "b": `)
		require.ErrorIs(s, locktest.ErrOf(multilock.TryLockAllFor(s.Context(), s.keys("a", "b"), time.Second)), holdfast.ErrNotAcquired)
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		require.ErrorIs(s, locktest.ErrOf(multilock.LockAll(ctx, s.keys("a", "b"))), context.DeadlineExceeded)
		require.NoError(s, their.Unlock(s.Context()))
		s.free("a", "b")
	})
}

// Calls with overlapping sets, whatever the order of their keys, never deadlock and never
// hold a key together.
func TestLockAll_OverlappingSetsNeverDeadlock(t *testing.T) {
	withSets(t, func(s sets) {
		keys := []string{"a", "b", "c", "d"}
		var inside [4]atomic.Int32
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				for range 10 {
					mine := rand.Perm(len(keys))[:1+rand.IntN(3)]
					var names []string
					for _, i := range mine {
						names = append(names, keys[i])
					}
					err := multilock.DoAll(s.Context(), s.keys(names...), func(context.Context) error {
						for _, i := range mine {
							assert.EqualValues(s, 1, inside[i].Add(1), "two holders")
						}
						time.Sleep(time.Millisecond)
						for _, i := range mine {
							inside[i].Add(-1)
						}
						return nil
					})
					assert.NoError(s, err)
				}
			})
		}
		all.Wait()
		s.free(keys...)
	})
}

// Free keys of one rlock locker cost one call. Held keys cost that call and their own.
func TestLockAll_TakesFreeKeysWithOneCall(t *testing.T) {
	inWorld(t, 2, 1, func(w world) {
		l, other := w.rlock(w.Clients(0)[0]), w.rlock(w.Clients(1)[0])
		set := w.lockAll(multilock.Keys(l, "c", "a", "b", "a"))
		require.Equal(w, 2, locktest.Stat(t, w.Servers[0], "commandstats", "cmdstat_evalsha:calls="), "one finds out whether the server is too old")
		require.Equal(w, []string{"a", "b", "c"}, set.Keys())
		for _, key := range set.Keys() {
			require.ErrorIs(w, locktest.ErrOf(other.TryLock(w.Context(), key)), holdfast.ErrNotAcquired)
		}
		w.reenters(set, multilock.Keys(l, "a", "b"))
		require.NoError(w, set.Unlock(w.Context()))

		their := w.lock(other, "b")
		require.ErrorIs(w, locktest.ErrOf(multilock.TryLockAll(w.Context(), multilock.Keys(l, "a", "b", "c"))), holdfast.ErrNotAcquired)
		for _, key := range []string{"a", "c"} {
			require.False(w, w.Servers[0].Redis().Exists(key), key)
		}
		require.NoError(w, their.Unlock(w.Context()))
	})
}

// A server that asks for keys of one slot has LockAll take them one after another.
func TestF37_LockAllBehindOneEndpoint(t *testing.T) {
	server := redistest.Start(t, redistest.ClusterNode(t, "0-16383", "")...)
	server.AwaitClusterNode(t)
	single := func(o *rueidis.ClientOption) { o.ForceSingleClient = true }
	l := locktest.Opened(rlock.New(server.Client(t, single)))(t)
	for range 2 { // it is found out, and is known
		set := locktest.Must(multilock.TryLockAll(t.Context(), multilock.Keys(l, "a", "b", "c")))(t)
		require.NoError(t, set.Unlock(t.Context()))
	}
	set := locktest.Must(multilock.LockAll(t.Context(), multilock.Keys(l, "{x}a", "{x}b")))(t)
	require.NoError(t, set.Unlock(t.Context()))
	require.Equal(t, 1, locktest.Stat(t, server, "errorstats", "errorstat_CROSSSLOT:count="))
}

// The options apply to each lock, except for the wait, which is for all keys.
func TestLockAll_Options(t *testing.T) {
	withSets(t, func(s sets) {
		set := s.lockAll(s.keys("a", "b"), holdfast.FixedLease(5*time.Second))
		require.LessOrEqual(s, time.Until(set.Deadline()), 5*time.Second)
		for _, keys := range []multilock.KeySet{multilock.Keys(s.plain, "a", "b"), s.keys("a")} {
			for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
				began := time.Now()
				require.ErrorIs(s, locktest.ErrOf(multilock.LockAll(s.Context(), keys, holdfast.WaitAtMost(wait))), holdfast.ErrNotAcquired)
				require.GreaterOrEqual(s, time.Since(began), wait)
			}
		}
		require.NoError(s, set.Unlock(s.Context()))
		set = s.lockAll(multilock.Keys(s.plain, "a", "b"), holdfast.MaxHold(100*time.Millisecond))
		<-set.Done()
		require.ErrorIs(s, set.Err(), holdfast.ErrLost)
		s.free("a", "b")

		set = s.lockAll(multilock.Keys(s.plain, "a", "b"), holdfast.Label("of both"))
		for _, key := range []string{"a", "b"} {
			require.Equal(s, "of both", locktest.Must(s.plain.Inspect(s.Context(), key))(s).Label)
		}
		require.NoError(s, set.Unlock(s.Context()))
	})
}

// The time that TryLockAllFor is given is not a context of the caller's: its end is no error of a context.
func TestTryLockAllFor_IsOverBeforeTheLastKeys(t *testing.T) {
	inWorld(t, 2, 1, func(w world) {
		l := w.rlock(w.Clients(0)[0])
		keys := multilock.Keys(l, "a", "b").OrderName("2")
		first := multilock.Keys(lateLocker{w.rlock(w.Clients(1)[0])}, "c").OrderName("1")
		_, err := multilock.TryLockAllFor(w.Context(), first.And(keys), time.Second)
		require.ErrorIs(w, err, holdfast.ErrNotAcquired)
		require.NotErrorIs(w, err, context.DeadlineExceeded)
		require.ErrorContains(w, err, `lock "a"`)

		ended := locktest.Over(w.Context())
		_, err = multilock.TryLockAll(ended, keys)
		require.ErrorIs(w, err, context.Canceled)
		require.ErrorContains(w, err, `lock "a"`)
		require.ErrorIs(w, locktest.ErrOf(multilock.LockAll(ended, keys, holdfast.Label("l"))), context.Canceled)
		require.ErrorIs(w, locktest.ErrOf(multilock.TryLockAll(ended, multilock.Keys(w.fair(w.Clients(0)[0]), "d", "e"))), context.Canceled)
	})
}

// lateLocker takes longer than it may.
type lateLocker struct{ holdfast.Locker }

func (l lateLocker) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	defer time.Sleep(2 * wait)
	return l.TryLock(ctx, key, opts...)
}

// DoAll runs its function while it has all keys, with a context that re-enters them.
func TestDoAll(t *testing.T) {
	withSets(t, func(s sets) {
		keys, mine := s.keys("a", "b"), errors.New("mine")
		err := multilock.DoAll(s.Context(), keys, func(ctx context.Context) error {
			require.ErrorIs(s, locktest.ErrOf(multilock.TryLockAll(s.Context(), keys)), holdfast.ErrNotAcquired)
			require.NoError(s, multilock.DoAll(ctx, keys, func(context.Context) error { return nil }, holdfast.WaitAtMost(0)))
			require.NotNil(s, holdfast.LeaseFrom(ctx))
			return mine
		})
		require.ErrorIs(s, err, mine)
		s.free("a", "b")
		require.Panics(s, func() {
			_ = multilock.DoAll(s.Context(), keys, func(context.Context) error { panic("mine") })
		})
		s.free("a", "b")
		err = multilock.DoAll(s.Context(), keys, func(ctx context.Context) error {
			require.NoError(s, locktest.ErrOf(s.queued.ForceUnlock(s.Context(), "b")))
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(s, err, holdfast.ErrLost)
		s.free("a", "b")
	})
}

// The work is done: that Redis hangs at the end is no error of DoAll. A lease that was lost before
// is, and the only one that is told.
func TestDoAll_IsDoneWithoutAnAnswerToTheRelease(t *testing.T) {
	for _, lost := range []bool{false, true} {
		inWorld(t, 1, 1, func(w world) {
			l := w.rlock(w.Clients(0)[0])
			ctx, cancel := context.WithCancel(w.Context())
			err := multilock.DoAll(ctx, multilock.Keys(l, "a", "b"), func(context.Context) error {
				if lost {
					require.NoError(w, locktest.ErrOf(l.ForceUnlock(w.Context(), "a")))
				}
				w.Servers[0].Pause()
				cancel()
				return nil
			})
			require.Equal(w, lost, errors.Is(err, holdfast.ErrLost))
			require.Equal(w, lost, err != nil, "%v", err)
			require.NotErrorIs(w, err, holdfast.ErrUnknown)
			w.Servers[0].Resume()
		})
	}
}

// A Redis that hangs keeps no key of another Redis.
func TestG9_LockAll_UnlocksEachByItself(t *testing.T) {
	inWorld(t, 2, 3, func(w world) {
		var keys multilock.KeySet
		var others []holdfast.Locker
		for i, order := range []string{"0", "1", "2"} {
			keys = keys.And(multilock.Keys(w.rlock(w.Clients(0)[i]), "k").OrderName(order))
			others = append(others, w.rlock(w.Clients(1)[i]))
		}
		set := w.lockAll(keys)
		w.Servers[1].Pause()
		ended := locktest.Go(func() error { return set.Unlock(w.Context()) })
		began := time.Now()
		w.lock(others[0], "k")
		w.lock(others[2], "k")
		require.Less(w, time.Since(began), time.Second)
		w.Servers[1].Resume()
		require.NoError(w, <-ended)
	})
}

// Each locker puts its prefix before its keys. A key that only the prefix makes fit is taken,
// and one that no name begins so refused before any key is taken.
func TestLockAll_WithPrefixes(t *testing.T) {
	inWorld(t, 3, 1, func(w world) {
		plain := w.rlock(w.Clients(0)[0], holdfast.WithPrefix("stock:"))
		queued := w.fair(w.Clients(1)[0], holdfast.WithPrefix("order:"))
		bare := w.rlock(w.Clients(2)[0])
		keys := multilock.Keys(plain, "a", "b").OrderName("plain").And(multilock.Keys(queued, "{a}", "b").OrderName("queued"))
		set := w.lockAll(keys)
		require.Equal(w, []string{"a", "b", "b", "{a}"}, set.Keys())
		for _, name := range []string{"stock:a", "stock:b", "order:{a}", "order:b"} {
			require.True(w, w.Servers[0].Redis().Exists(name), name)
		}
		w.reenters(set, keys)
		require.NoError(w, set.Unlock(w.Context()))
		before := locktest.ScriptCalls(t, locktest.Topology{w.Servers[0]})
		require.ErrorContains(w, locktest.ErrOf(multilock.LockAll(w.Context(), keys.And(multilock.Keys(bare, "{a}").OrderName("bare")))), `lock "{a}": key is in braces`)
		require.Equal(w, before, locktest.ScriptCalls(t, locktest.Topology{w.Servers[0]}))
	})
}

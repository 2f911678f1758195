package multilock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

// sets are lockers of every lock kind: two of one Redis each, and one of three.
type sets struct {
	*testing.T
	plain  *rlock.Locker
	queued *fair.Locker
	quorum *multilock.Locker
	nodes  []*redistest.Server // of the quorum
}

func newSets(t *testing.T) sets {
	plain, err := rlock.New(redistest.Start(t).Client(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = plain.Close() })
	queued, err := fair.New(redistest.Start(t).Client(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = queued.Close() })
	nodes := startNodes(t, 3)
	quorum := open(t, nodes)
	nothingHeld(t, quorum)
	return sets{t, plain, queued, quorum, nodes}
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

// free returns when all keys are free: a call that ended may give back a lease in the
// background.
func (s sets) free(keys ...string) {
	s.Helper()
	for _, k := range keys {
		require.Eventually(s, func() bool {
			p, err := s.plain.Inspect(s.Context(), k)
			require.NoError(s, err)
			q, err := s.queued.Inspect(s.Context(), k)
			require.NoError(s, err)
			m, err := s.quorum.Inspect(s.Context(), k)
			require.NoError(s, err)
			return !p.Held && !q.Held && !m.Held
		}, locktest.Patience, time.Millisecond, k)
	}
}

// A set holds each of its keys once, in one order, until Unlock.
func TestLockAll_TakesAllOfEveryKind(t *testing.T) {
	s := newSets(t)
	set, err := multilock.LockAll(t.Context(), s.keys("b", "a", "b"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, set.Keys())
	require.Len(t, set.Fences(), 6)
	require.NoError(t, set.Err())
	require.Positive(t, time.Until(set.Deadline()))
	for _, key := range []string{"a", "b"} {
		_, err := s.plain.TryLock(t.Context(), key)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		_, err = s.queued.TryLock(t.Context(), key)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		_, err = s.quorum.TryLock(t.Context(), key)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
	}
	inner, err := multilock.LockAll(set.Bind(t.Context()), s.keys("a")) // re-entry
	require.NoError(t, err)
	require.NoError(t, inner.Unlock(t.Context()))
	require.NoError(t, set.Err())
	require.NoError(t, set.Unlock(t.Context()))
	<-set.Done()
	require.ErrorIs(t, set.Err(), multilock.ErrReleased)
	require.ErrorIs(t, set.Unlock(t.Context()), multilock.ErrReleased)
	s.free("a", "b")
}

// If one key cannot be acquired, none is held.
func TestLockAll_AllOrNothing(t *testing.T) {
	s := newSets(t)
	their, err := s.quorum.Lock(t.Context(), "b") // the last in the order
	require.NoError(t, err)
	_, err = multilock.TryLockAll(t.Context(), s.keys("a", "b"))
	require.ErrorIs(t, err, multilock.ErrNotAcquired)
	require.ErrorContains(t, err, `holdfast: lock "b": `)
	_, err = multilock.TryLockAllFor(t.Context(), s.keys("a", "b"), time.Second)
	require.ErrorIs(t, err, multilock.ErrNotAcquired)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = multilock.LockAll(ctx, s.keys("a", "b"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, their.Unlock(t.Context()))
	s.free("a", "b")
}

// Calls with overlapping sets, whatever the order of their keys, never deadlock and never
// hold a key together.
func TestLockAll_OverlappingSetsNeverDeadlock(t *testing.T) {
	s := newSets(t)
	keys := []string{"a", "b", "c", "d"}
	var inside [4]atomic.Int32
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 4*locktest.Patience)
	defer cancel()
	for range 12 {
		all.Go(func() {
			for range 15 {
				mine := rand.Perm(len(keys))[:1+rand.IntN(3)]
				var names []string
				for _, i := range mine {
					names = append(names, keys[i])
				}
				set, err := multilock.LockAll(ctx, s.keys(names...))
				if err != nil {
					t.Error(err)
					return
				}
				for _, i := range mine {
					assert.EqualValues(t, 1, inside[i].Add(1), "two holders")
				}
				for _, i := range mine {
					inside[i].Add(-1)
				}
				if err := set.Unlock(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s.free(keys...)
}

// Free keys of one rlock locker cost one call. Held keys cost that call and their own.
func TestLockAll_TakesFreeKeysWithOneCall(t *testing.T) {
	server := redistest.Start(t)
	l, err := rlock.New(server.Client(t))
	require.NoError(t, err)
	defer l.Close()
	other, err := rlock.New(server.Client(t))
	require.NoError(t, err)
	defer other.Close()
	calls := func() int {
		reply := server.Do(t, "INFO", "commandstats")
		text, err := reply.ToString()
		require.NoError(t, err)
		sum := 0
		for _, name := range []string{"eval", "evalsha"} {
			if _, rest, found := strings.Cut(text, "cmdstat_"+name+":calls="); found {
				number, _, _ := strings.Cut(rest, ",")
				n, err := strconv.Atoi(number)
				require.NoError(t, err)
				sum += n
			}
			if _, rest, found := strings.Cut(text, "cmdstat_"+name+":"); found {
				_, rest, _ = strings.Cut(rest, "failed_calls=")
				number, _, _ := strings.Cut(rest, "\r\n")
				n, err := strconv.Atoi(number)
				require.NoError(t, err)
				sum -= n // NOSCRIPT
			}
		}
		return sum
	}
	set, err := multilock.LockAll(t.Context(), multilock.Keys(l, "c", "a", "b", "a"))
	require.NoError(t, err)
	require.Equal(t, 2, calls(), "one finds out whether the server is too old")
	require.Equal(t, []string{"a", "b", "c"}, set.Keys())
	for _, key := range set.Keys() {
		_, err := other.TryLock(t.Context(), key)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
	}
	inner, err := multilock.LockAll(set.Bind(t.Context()), multilock.Keys(l, "a", "b"))
	require.NoError(t, err)
	require.NoError(t, inner.Unlock(t.Context()))
	require.NoError(t, set.Unlock(t.Context()))

	their, err := other.Lock(t.Context(), "b")
	require.NoError(t, err)
	_, err = multilock.TryLockAll(t.Context(), multilock.Keys(l, "a", "b", "c"))
	require.ErrorIs(t, err, multilock.ErrNotAcquired)
	for _, key := range []string{"a", "c"} {
		lease, err := other.TryLock(t.Context(), key)
		require.NoError(t, err, key)
		require.NoError(t, lease.Unlock(t.Context()))
	}
	require.NoError(t, their.Unlock(t.Context()))
}

// A server that asks for keys of one slot has LockAll take them one after another.
func TestF37_LockAllBehindOneEndpoint(t *testing.T) {
	server := redistest.Start(t, redistest.ClusterNode(t, "0-16383", "")...)
	server.AwaitClusterNode(t)
	single := func(o *rueidis.ClientOption) { o.ForceSingleClient = true }
	l, err := rlock.New(server.Client(t, single))
	require.NoError(t, err)
	defer l.Close()
	for range 2 { // it is found out, and is known
		set, err := multilock.TryLockAll(t.Context(), multilock.Keys(l, "a", "b", "c"))
		require.NoError(t, err)
		require.NoError(t, set.Unlock(t.Context()))
	}
	set, err := multilock.LockAll(t.Context(), multilock.Keys(l, "{x}a", "{x}b"))
	require.NoError(t, err)
	require.NoError(t, set.Unlock(t.Context()))
	m := server.Do(t, "INFO", "errorstats")
	info, err := m.ToString()
	require.NoError(t, err)
	require.Contains(t, info, "errorstat_CROSSSLOT:count=1\r\n")
}

// The options apply to each lock, except for the wait, which is for all keys.
func TestLockAll_Options(t *testing.T) {
	s := newSets(t)
	set, err := multilock.LockAll(t.Context(), s.keys("a", "b"), holdfast.FixedLease(5*time.Second))
	require.NoError(t, err)
	require.LessOrEqual(t, time.Until(set.Deadline()), 5*time.Second)
	for _, keys := range []multilock.KeySet{multilock.Keys(s.plain, "a", "b"), s.keys("a")} {
		for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
			began := time.Now()
			_, err = multilock.LockAll(t.Context(), keys, holdfast.WaitAtMost(wait))
			require.ErrorIs(t, err, multilock.ErrNotAcquired)
			require.GreaterOrEqual(t, time.Since(began), wait)
		}
	}
	require.NoError(t, set.Unlock(t.Context()))
	set, err = multilock.LockAll(t.Context(), multilock.Keys(s.plain, "a", "b"), holdfast.MaxHold(100*time.Millisecond))
	require.NoError(t, err)
	<-set.Done()
	require.ErrorIs(t, set.Err(), multilock.ErrLost)
	s.free("a", "b")
}

// DoAll runs its function while it has all keys, with a context that re-enters them.
func TestDoAll(t *testing.T) {
	s := newSets(t)
	keys, mine := s.keys("a", "b"), errors.New("mine")
	err := multilock.DoAll(t.Context(), keys, func(ctx context.Context) error {
		_, err := multilock.TryLockAll(t.Context(), keys)
		require.ErrorIs(t, err, multilock.ErrNotAcquired)
		require.NoError(t, multilock.DoAll(ctx, keys, func(context.Context) error { return nil }, holdfast.WaitAtMost(0)))
		require.NotNil(t, holdfast.LeaseFrom(ctx))
		return mine
	})
	require.ErrorIs(t, err, mine)
	s.free("a", "b")
	require.Panics(t, func() {
		_ = multilock.DoAll(t.Context(), keys, func(context.Context) error { panic("mine") })
	})
	s.free("a", "b")
	err = multilock.DoAll(t.Context(), keys, func(ctx context.Context) error {
		_, err := s.queued.ForceUnlock(t.Context(), "b")
		require.NoError(t, err)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, multilock.ErrLost)
	s.free("a", "b")
}

// The work is done: that Redis hangs at the end is no error of DoAll. A lease that was lost before
// is, and the only one that is told.
func TestDoAll_IsDoneWithoutAnAnswerToTheRelease(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	l, err := rlock.New(s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), rlock.WithLease(3*time.Second))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	for _, lost := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		err := multilock.DoAll(ctx, multilock.Keys(l, "a", "b"), func(ctx context.Context) error {
			if lost {
				_, err := l.ForceUnlock(t.Context(), "a")
				require.NoError(t, err)
			}
			proxy.HoldRequests(true)
			cancel()
			return nil
		})
		require.Equal(t, lost, errors.Is(err, holdfast.ErrLost))
		require.Equal(t, lost, err != nil, "%v", err)
		require.NotErrorIs(t, err, holdfast.ErrUnknown)
		proxy.HoldRequests(false)
	}
}

// Each locker puts its prefix before its keys. A key that only the prefix makes fit is taken,
// and one that no name begins so refused before any key is taken.
func TestLockAll_WithPrefixes(t *testing.T) {
	s := redistest.Start(t)
	plain, err := rlock.New(s.Client(t), rlock.WithPrefix("stock:"))
	require.NoError(t, err)
	defer plain.Close()
	queued, err := fair.New(s.Client(t), fair.WithPrefix("order:"))
	require.NoError(t, err)
	defer queued.Close()
	bare, err := rlock.New(s.Client(t))
	require.NoError(t, err)
	defer bare.Close()
	keys := multilock.Keys(plain, "a", "b").OrderName("plain").And(multilock.Keys(queued, "{a}", "b").OrderName("queued"))
	set, err := multilock.LockAll(t.Context(), keys)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "b", "{a}"}, set.Keys())
	for _, name := range []string{"stock:a", "stock:b", "order:{a}", "order:b"} {
		_, err := bare.TryLock(t.Context(), name)
		require.ErrorIs(t, err, rlock.ErrNotAcquired, name)
	}
	inner, err := multilock.LockAll(set.Bind(t.Context()), keys) // re-entry
	require.NoError(t, err)
	require.NoError(t, inner.Unlock(t.Context()))
	require.NoError(t, set.Unlock(t.Context()))
	before := locktest.ScriptCalls(t, locktest.Topology{s})
	_, err = multilock.LockAll(t.Context(), keys.And(multilock.Keys(bare, "{a}").OrderName("bare")))
	require.ErrorContains(t, err, `lock "{a}": key is in braces`)
	require.Equal(t, before, locktest.ScriptCalls(t, locktest.Topology{s}))
}

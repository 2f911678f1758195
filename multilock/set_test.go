package multilock_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/scripts"
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
	require.NoError(t, quorum.Bootstrap(t.Context(), multilock.NothingHeld()))
	return sets{t, plain, queued, quorum, nodes}
}

// parts are keys of all three, in whatever order.
func (s sets) parts(keys ...string) []multilock.Part {
	parts := []multilock.Part{
		multilock.Keys(s.plain, keys...).Named("plain"),
		multilock.Keys(s.queued, keys...).Named("queued"),
		multilock.Keys(s.quorum, keys...).Named("quorum"),
	}
	rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return parts
}

// free returns when nobody holds any of the keys: what was granted to a call that had
// ended is given back in the background.
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
		}, 10*time.Second, time.Millisecond, k)
	}
}

// A set holds all its keys, in one order, each once, until Unlock.
func TestLockAll_TakesAllOfEveryKind(t *testing.T) {
	s := newSets(t)
	set, err := multilock.LockAll(t.Context(), s.parts("b", "a", "b")...)
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
	inner, err := multilock.LockAll(set.Bind(t.Context()), s.parts("a")...) // re-entry
	require.NoError(t, err)
	require.NoError(t, inner.Unlock(t.Context()))
	require.NoError(t, set.Err())
	require.NoError(t, set.Unlock(t.Context()))
	<-set.Done()
	require.ErrorIs(t, set.Err(), multilock.ErrReleased)
	require.ErrorIs(t, set.Unlock(t.Context()), multilock.ErrReleased)
	s.free("a", "b")
}

// If one key cannot be had, none is held.
func TestLockAll_AllOrNothing(t *testing.T) {
	s := newSets(t)
	their, err := s.quorum.Lock(t.Context(), "b") // the last in the order
	require.NoError(t, err)
	_, err = multilock.TryLockAll(t.Context(), s.parts("a", "b")...)
	require.ErrorIs(t, err, multilock.ErrNotAcquired)
	require.ErrorContains(t, err, `holdfast: lock "b": `)
	_, err = multilock.TryLockAllFor(t.Context(), time.Second, s.parts("a", "b")...)
	require.ErrorIs(t, err, multilock.ErrNotAcquired)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = multilock.LockAll(ctx, s.parts("a", "b")...)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, their.Unlock(t.Context()))
	s.free("a", "b")
}

// A lease that is lost ends the set, and the wait for the keys behind it.
func TestLockAll_IsLostWithOnePart(t *testing.T) {
	s := newSets(t)
	set, err := multilock.LockAll(t.Context(), s.parts("a")...)
	require.NoError(t, err)
	bound := set.Bind(t.Context())
	_, err = s.queued.ForceUnlock(t.Context(), "a")
	require.NoError(t, err)
	<-set.Done()
	<-bound.Done()
	require.ErrorIs(t, context.Cause(bound), multilock.ErrLost)
	require.ErrorIs(t, set.Err(), multilock.ErrLost)
	require.ErrorIs(t, set.Unlock(t.Context()), multilock.ErrLost)
	s.free("a")

	their, err := open(t, s.nodes).Lock(t.Context(), "a")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := multilock.LockAll(t.Context(), s.parts("a")...)
		done <- err
	}()
	require.Eventually(t, func() bool { // it has the others, and waits for the last
		reply := s.nodes[0].Do(t, "PUBSUB", "NUMSUB", scripts.Channel("a"))
		m, err := reply.AsIntMap()
		return err == nil && m[scripts.Channel("a")] > 0
	}, 10*time.Second, time.Millisecond)
	_, err = s.plain.ForceUnlock(t.Context(), "a")
	require.NoError(t, err)
	require.ErrorIs(t, <-done, multilock.ErrLost)
	require.NoError(t, their.Unlock(t.Context()))
	s.free("a")
}

// A set ends no later than the lease of it that ends first, wherever that stands.
func TestLockAll_EndsWithItsShortestLease(t *testing.T) {
	server := redistest.Start(t)
	part := func(name string, lease time.Duration) multilock.Part {
		l, err := rlock.New(server.Client(t), rlock.WithLease(lease))
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return multilock.Keys(l, name).Named(name)
	}
	for _, shortest := range []string{"a", "b", "c"} {
		var parts []multilock.Part
		for _, name := range []string{"a", "b", "c"} {
			lease := time.Hour
			if name == shortest {
				lease = time.Minute
			}
			parts = append(parts, part(name, lease))
		}
		set, err := multilock.LockAll(t.Context(), parts...)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Until(set.Deadline()), time.Minute, shortest)
		require.NoError(t, set.Unlock(t.Context()))
	}
}

// Sets that overlap, in whatever order their keys are named, never deadlock and
// never hold a key together.
func TestLockAll_OverlappingSetsNeverDeadlock(t *testing.T) {
	s := newSets(t)
	keys := []string{"a", "b", "c", "d"}
	var inside [4]atomic.Int32
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range 12 {
		all.Go(func() {
			for range 15 {
				mine := rand.Perm(len(keys))[:1+rand.IntN(3)]
				var names []string
				for _, i := range mine {
					names = append(names, keys[i])
				}
				set, err := multilock.LockAll(ctx, s.parts(names...)...)
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

// Free keys of one locker of rlock cost one call; held ones that call, and their own.
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
	require.Equal(t, 1, calls())
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
	leases, err := l.TryLockAll(t.Context(), "a", "b", "c")
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.Empty(t, leases)
	for _, key := range []string{"a", "c"} {
		lease, err := other.TryLock(t.Context(), key)
		require.NoError(t, err, key)
		require.NoError(t, lease.Unlock(t.Context()))
	}
	require.NoError(t, their.Unlock(t.Context()))
	_, err = l.TryLockAll(t.Context())
	require.ErrorContains(t, err, "no keys")
	_, err = l.TryLockAll(t.Context(), "a", "")
	require.ErrorContains(t, err, "key is empty")
}

func TestLockAll_RefusesWhatHasNoOrder(t *testing.T) {
	s := newSets(t)
	for want, parts := range map[string][]multilock.Part{
		"no keys":             {},
		"not made by Keys":    {{}},
		"names of their own":  {multilock.Keys(s.plain, "a"), multilock.Keys(s.queued, "a")},
		"are of one locker":   {multilock.Keys(s.plain, "a").Named("1"), multilock.Keys(s.plain, "b").Named("2")},
		"by Keys of a locker": {multilock.Keys((*rlock.Locker)(nil), "a")},
	} {
		_, err := multilock.LockAll(t.Context(), parts...)
		require.ErrorContains(t, err, want)
	}
	_, err := multilock.TryLockAllFor(t.Context(), -1, multilock.Keys(s.plain, "a"))
	require.ErrorContains(t, err, "negative")
}

// Also where it would have to wait for another first.
func TestF8_LockAll_RefusesBeforeItTakesAny(t *testing.T) {
	s := newSets(t)
	their, err := s.plain.Lock(t.Context(), "a")
	require.NoError(t, err)
	for _, key := range []string{"{a}", "holdfast_node", ""} {
		for _, parts := range [][]multilock.Part{{multilock.Keys(s.plain, "a", key)}, s.parts("a", key)} {
			_, err := multilock.LockAll(t.Context(), parts...)
			require.ErrorContains(t, err, "key is")
			_, err = multilock.TryLockAllFor(t.Context(), time.Hour, parts...)
			require.ErrorContains(t, err, "key is")
			_, err = multilock.TryLockAll(t.Context(), parts...)
			require.ErrorContains(t, err, "key is")
			require.NotErrorIs(t, err, multilock.ErrNotAcquired)
		}
	}
	require.NoError(t, their.Unlock(t.Context()))
	s.free("a")
}

// The answer to the one call for all keys is lost: whether they are held is not known.
func TestF6_LockAll_AnswerLost(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	l, err := rlock.New(server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }))
	require.NoError(t, err)
	defer l.Close()
	keys := multilock.Keys(l, "a", "b")
	set, err := multilock.LockAll(t.Context(), keys)
	require.NoError(t, err)
	require.NoError(t, set.Unlock(t.Context()))

	both := func(cmd []string) bool { return slices.Contains(cmd, "a") && slices.Contains(cmd, "b") }
	proxy.SwallowReply(1, both)
	_, err = multilock.TryLockAll(t.Context(), keys)
	require.ErrorIs(t, err, multilock.ErrUnknown)
	require.NotErrorIs(t, err, multilock.ErrNotAcquired)

	proxy.OnReply(func(cmd []string) redistest.Verdict {
		if both(cmd) {
			return redistest.Hold
		}
		return redistest.Pass
	})
	began := time.Now()
	_, err = multilock.TryLockAllFor(t.Context(), 500*time.Millisecond, keys)
	require.Less(t, time.Since(began), 5*time.Second, "the call alone may take so long")
	require.ErrorIs(t, err, multilock.ErrUnknown)
	require.NotErrorIs(t, err, multilock.ErrNotAcquired)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	proxy.OnReply(nil)
	proxy.Release()
	set, err = multilock.LockAll(t.Context(), keys)
	require.NoError(t, err)
	require.NoError(t, set.Unlock(t.Context()))
}

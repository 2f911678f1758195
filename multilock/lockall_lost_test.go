package multilock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// A lease that is lost ends the set, and the wait for the keys behind it.
func TestLockAll_IsLostWithOneLease(t *testing.T) {
	withSets(t, func(s sets) {
		set := s.lockAll(s.keys("a"))
		bound := set.Bind(s.Context())
		require.NoError(s, locktest.ErrOf(s.queued.ForceUnlock(s.Context(), "a")))
		<-set.Done()
		<-bound.Done()
		require.ErrorIs(s, context.Cause(bound), holdfast.ErrLost)
		require.ErrorIs(s, set.Err(), holdfast.ErrLost)
		require.ErrorIs(s, set.Unlock(s.Context()), holdfast.ErrLost)
		s.free("a")

		their := s.lock(s.another(1), "a")
		done := locktest.Go(func() error { return locktest.ErrOf(multilock.LockAll(s.Context(), s.keys("a"))) })
		settle() // it has the others, and waits for the last
		require.NoError(s, locktest.ErrOf(s.plain.ForceUnlock(s.Context(), "a")))
		require.ErrorIs(s, <-done, holdfast.ErrLost)
		require.NoError(s, their.Unlock(s.Context()))
		s.free("a")
	})
}

// A set ends no later than the first of its leases, wherever that is in the order.
func TestLockAll_EndsWithItsShortestLease(t *testing.T) {
	names := []string{"a", "b", "c"}
	for _, shortest := range names {
		inWorld(t, 3, 1, func(w world) {
			var keys multilock.KeySet
			for i, name := range names {
				lease := time.Hour
				if name == shortest {
					lease = time.Minute
				}
				l := w.rlock(w.Clients(i)[0], holdfast.WithLease(lease))
				keys = keys.And(multilock.Keys(l, name).OrderName(name))
			}
			set := w.lockAll(keys)
			require.LessOrEqual(w, time.Until(set.Deadline()), time.Minute, shortest)
		})
	}
}

// After a lost answer to the one call for all keys, it is not known whether they are held, until they are free.
func TestF6_LockAll_AnswerLost(t *testing.T) {
	inWorld(t, 2, 1, func(w world) {
		link := w.Links[0][0]
		keys := multilock.Keys(w.rlock(w.Clients(0)[0]), "a", "b")
		set := w.lockAll(keys)
		require.NoError(w, set.Unlock(w.Context()))

		both := func(cmd []string) bool { return slices.Contains(cmd, "a") && slices.Contains(cmd, "b") }
		link.SwallowReply(1, both)
		_, err := multilock.TryLockAll(w.Context(), keys)
		require.ErrorIs(w, err, holdfast.ErrUnknown)
		require.NotErrorIs(w, err, holdfast.ErrNotAcquired)
		set, err = multilock.TryLockAllFor(w.Context(), multilock.Keys(w.rlock(w.Clients(1)[0]), "a", "b"), time.Second)
		require.NoError(w, err, "they are free, well before the leases would end")
		require.NoError(w, set.Unlock(w.Context()))

		link.OnReply(redistest.Always(both, redistest.Hold))
		began := time.Now()
		_, err = multilock.TryLockAllFor(w.Context(), keys, 500*time.Millisecond)
		require.Less(w, time.Since(began), time.Second, "not much longer than the call itself")
		require.ErrorIs(w, err, holdfast.ErrUnknown)
		require.NotErrorIs(w, err, holdfast.ErrNotAcquired)
		require.NotErrorIs(w, err, context.DeadlineExceeded)
		link.OnReply(nil)
		link.Release()

		for name, lock := range map[string]func(context.Context) error{
			"TryLockAll":    func(ctx context.Context) error { _, err := multilock.TryLockAll(ctx, keys); return err },
			"TryLockAllFor": func(ctx context.Context) error { _, err := multilock.TryLockAllFor(ctx, keys, time.Minute); return err },
			"LockAll":       func(ctx context.Context) error { _, err := multilock.LockAll(ctx, keys); return err },
		} {
			require.NoError(w, w.lockAll(keys).Unlock(w.Context()))
			link.OnReply(redistest.Always(both, redistest.Hold))
			ctx, cancel := context.WithCancel(w.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			err := lock(ctx)
			require.ErrorIs(w, err, holdfast.ErrUnknown, name)
			require.ErrorIs(w, err, context.Canceled, name)
			link.OnReply(nil)
			link.Release()
		}
	})
}

// cancelling does something after each call.
type cancelling struct {
	rueidis.Client
	after *func()
}

func (c cancelling) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	reply := c.Client.Do(ctx, cmd)
	(*c.after)()
	return reply
}

// The call says that another has a key, and ctx ends before it returns: the error says both.
func TestLockAll_ContextEndsWithTheAnswer(t *testing.T) {
	inWorld(t, 2, 1, func(w world) {
		after := func() {}
		keys := multilock.Keys(w.rlock(cancelling{w.Clients(0)[0], &after}), "a", "b")
		locktest.Lock(w, w.rlock(w.Clients(1)[0]), w.Context(), "b")
		require.ErrorIs(w, locktest.ErrOf(multilock.TryLockAll(w.Context(), keys)), holdfast.ErrNotAcquired) // the server knows the script now
		ctx, cancel := context.WithCancel(w.Context())
		after = cancel
		_, err := multilock.LockAll(ctx, keys)
		require.ErrorIs(w, err, holdfast.ErrNotAcquired)
		require.ErrorIs(w, err, context.Canceled)
	})
}

// The observer of a locker is told of each key once, whether one call takes all keys or not.
func TestLockAll_IsObserved(t *testing.T) {
	inWorld(t, 2, 1, func(w world) {
		var told []string // calls are one after another
		note := func(what, key string) { told = append(told, what+" "+key) }
		l := w.rlock(w.Clients(0)[0], holdfast.WithObserver(holdfast.Observer{
			Acquired: func(e holdfast.AcquiredEvent) { note(string(e.How), e.Key) },
			Failed: func(e holdfast.FailedEvent) {
				require.Positive(w, e.Waited)
				note("refused", e.Key)
			},
			Released: func(e holdfast.ReleasedEvent) { note("released", e.Key) },
		}))
		keys := multilock.Keys(l, "a", "b")
		set := w.lockAll(keys)
		require.NoError(w, set.Unlock(w.Context()))
		w.lock(w.rlock(w.Clients(1)[0]), "b")
		require.ErrorIs(w, locktest.ErrOf(multilock.TryLockAll(w.Context(), keys)), holdfast.ErrNotAcquired)
		w.Servers[0].Kill()
		require.Error(w, locktest.ErrOf(multilock.TryLockAll(w.Context(), keys)))
		_ = l.Close()
		require.ElementsMatch(w, []string{"call a", "call b", "released a", "released b", "call a", "refused b", "released a", "refused a"}, told)
	})
}

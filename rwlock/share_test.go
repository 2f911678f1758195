package rwlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/rwlock"
)

// Readers of one process share a hold: the second makes no call, and only the last releases.
func TestReadersShareAHold(t *testing.T) {
	s := redistest.Start(t)
	l, other := userLocker(t, s, holdfast.WithLocalHandover(20*time.Second)), userLocker(t, s)
	ctx := t.Context()
	first := locktest.Lock(t, l.RLocker(), ctx, "k")
	calls := locktest.Stat(t, s, "stats", "total_commands_processed:")
	var all []*holdfast.Lease
	for range 1000 {
		all = append(all, locktest.Lock(t, l.RLocker(), ctx, "k"))
	}
	require.Less(t, locktest.Stat(t, s, "stats", "total_commands_processed:")-calls, 100)
	for _, lease := range all {
		require.Equal(t, first.Owner(), lease.Owner())
	}
	require.NoError(t, first.Unlock(ctx))
	require.ErrorIs(t, first.Unlock(ctx), holdfast.ErrReleased)
	for _, lease := range all[1:] {
		require.NoError(t, lease.Err())
		require.NoError(t, lease.Unlock(ctx))
	}
	require.ErrorIs(t, locktest.ErrOf(other.TryLock(ctx, "k")), holdfast.ErrNotAcquired, "one still reads")
	require.NoError(t, all[0].Unlock(ctx))
	require.NoError(t, locktest.Cycle(other, ctx, "k"))
	require.Zero(t, locktest.Number(t, s, "DBSIZE"))
}

// A hold that is lost ends all that share it, and only them.
func TestG3_ALossEndsThoseThatShareTheHold(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l := userLocker(t, s, holdfast.WithLocalHandover(20*time.Second), holdfast.WithLease(20*time.Second))
		ctx := t.Context()
		a, b := locktest.Lock(t, l.RLocker(), ctx, "k"), locktest.Lock(t, l.RLocker(), ctx, "k")
		own := locktest.Lock(t, l.RLocker(), ctx, "k", holdfast.FixedLease(time.Hour))
		require.NotEqual(t, a.Owner(), own.Owner())
		s.Do(t, "HDEL", "k", a.Owner())
		for _, lease := range []*holdfast.Lease{a, b} {
			locktest.Within(t, lease.Done())
			require.ErrorIs(t, lease.Unlock(ctx), holdfast.ErrLost)
		}
		require.NoError(t, own.Err())
		require.NoError(t, own.Unlock(ctx))
	})
}

// However long readers follow one another, they have one hold, as long as no writer waits.
func TestG9_ReadersThatFollowOneAnotherHaveOneHold(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l := userLocker(t, s, holdfast.WithLocalHandover(0)) // each tenure is over at once
		ctx := t.Context()
		last := locktest.Lock(t, l.RLocker(), ctx, "k")
		for range 50 {
			next := locktest.Lock(t, l.RLocker(), ctx, "k")
			require.Equal(t, last.Owner(), next.Owner())
			require.NoError(t, last.Unlock(ctx))
			last = next
		}
		require.Equal(t, 2, locktest.Number(t, s, "HLEN", "k"), "the mode, and one reader")
		writes := locktest.GoLock(l, ctx, "k")
		locktest.Await(t, func() bool { return waits(t, s, "k", "writer") == 1 })
		require.ErrorIs(t, locktest.ErrOf(l.RLocker().TryLock(ctx, "k")), holdfast.ErrNotAcquired)
		require.NoError(t, locktest.Next(t, last, writes).Unlock(ctx))
	})
}

// Readers that come while one asks Redis wait for its answer: all have its hold, by one acquire.
func TestG9_ABurstOfReadersMakesOneAcquire(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		proxy := s.Proxy(t)
		var asked atomic.Int64
		proxy.OnRequest(redistest.Seeing(locktest.Is("acquire"), func() { asked.Add(1) }))
		l := locktest.Opened(rwlock.New(s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })))(t)
		require.NoError(t, locktest.Cycle(l.RLocker(), t.Context(), "k")) // Redis has the scripts
		for range 2 {
			asked.Store(0)
			var readers []<-chan locktest.Acquired
			for range 50 {
				readers = append(readers, locktest.GoLock(l.RLocker(), t.Context(), "k"))
			}
			for _, reader := range readers {
				defer locktest.Got(t, reader).Unlock(t.Context())
			}
			require.LessOrEqual(t, asked.Load(), int64(1))
			time.Sleep(time.Second) // their tenure is over
		}
	})
}

// A reader asks Redis whether it may share a hold that has had its tenure. Its context ends that, also
// while a connection is being made.
func TestG9_AContextEndsTheQuestionWhetherToShare(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		proxy := s.Proxy(t)
		l := locktest.Must(rwlock.New(s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })))(t)
		held := locktest.Lock(t, l.RLocker(), t.Context(), "k")
		proxy.HoldReplies(true)
		proxy.Cut()
		time.Sleep(time.Second)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, locktest.ErrOf(l.RLocker().Lock(ctx, "k")), context.DeadlineExceeded)
		require.Less(t, time.Since(began), 200*time.Millisecond)
		proxy.HoldReplies(false)
		require.NoError(t, held.Unlock(t.Context()))
		require.NoError(t, l.Close())
	})
}

// The answer whether a hold may be shared is lost: the reader gets a hold of its own. It comes late, when
// the hold has been released and a writer has the key: the reader waits.
func TestG1_AnAnswerWhetherToShareIsLostOrLate(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		proxy, ctx := s.Proxy(t), t.Context()
		l := locktest.Opened(rwlock.New(s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), holdfast.WithLocalHandover(0)))(t)
		first := locktest.Lock(t, l.RLocker(), ctx, "k")
		require.NoError(t, locktest.Cycle(l.RLocker(), ctx, "k")) // Redis has the script
		lost := proxy.SwallowReply(1, locktest.Is("share"))
		second := locktest.Lock(t, l.RLocker(), ctx, "k")
		locktest.Within(t, lost)
		require.NotEqual(t, first.Owner(), second.Owner())
		require.NoError(t, first.Unlock(ctx))

		hook, late := locktest.Holding("share")
		proxy.OnReply(hook)
		third := locktest.GoLock(l.RLocker(), ctx, "k")
		locktest.Within(t, late)
		released := locktest.Go(func() error { return second.Unlock(ctx) })
		writer := locktest.Lock(t, userLocker(t, s), ctx, "k")
		proxy.OnReply(nil)
		proxy.Release()
		require.NoError(t, <-released)
		time.Sleep(time.Second)
		require.Empty(t, third, "a writer has the key")
		require.NoError(t, locktest.Next(t, writer, third).Unlock(ctx))
	})
}

// A cap counts from the acquire of a hold, so readers share a capped one for a tenure only. Otherwise one that
// has just begun could be ended.
func TestG9_ReadersShareACappedHoldForATenure(t *testing.T) {
	s := redistest.Start(t)
	l := userLocker(t, s, holdfast.WithLocalHandover(0), holdfast.WithMaxHold(time.Hour))
	first := locktest.Lock(t, l.RLocker(), t.Context(), "k")
	second := locktest.Lock(t, l.RLocker(), t.Context(), "k")
	require.NotEqual(t, first.Owner(), second.Owner())
	require.NoError(t, first.Unlock(t.Context()))
	require.NoError(t, second.Unlock(t.Context()))
}

// A reader that does not wait asks Redis, whoever waits here: those may not have heard yet that the key is free.
func TestG4_AReaderTriesBesideOthersThatWait(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l, other := userLocker(t, s), userLocker(t, s)
		ctx := t.Context()
		locktest.Lock(t, other, ctx, "k", holdfast.FixedLease(time.Hour))
		waiting := locktest.GoLock(l.RLocker(), ctx, "k")
		locktest.Await(t, func() bool { return waits(t, s, "k", "reader") == 1 })
		require.EqualValues(t, 1, locktest.Number(t, s, "DEL", "k"))
		lease := locktest.Must(l.RLocker().TryLock(ctx, "k"))(t)
		require.NoError(t, locktest.Got(t, waiting).Unlock(ctx))
		require.NoError(t, lease.Unlock(ctx))
	})
}

package gocronholdfast_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/gocronholdfast"
	"github.com/holdfast-go/holdfast/election"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func newElector(t *testing.T, l holdfast.Locker) *gocronholdfast.Elector {
	e := redistest.Must(gocronholdfast.NewElector(l, "leader"))(t)
	t.Cleanup(e.Close)
	return e
}

// One scheduler runs all jobs, until it closes; then the other one does.
func TestElector_OneSchedulerRunsAllJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := redistest.Must(holdfasttest.New())(t)
		var runs [2]atomic.Int32
		var electors [2]*gocronholdfast.Elector
		for i, l := range []holdfast.Locker{locks, locks.Another()} {
			electors[i] = newElector(t, l)
			synctest.Wait()
			schedule(t, gocron.WithDistributedElector(electors[i]), gocron.DurationJob(time.Minute), func() { runs[i].Add(1) })
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, []int32{5, 0}, []int32{runs[0].Load(), runs[1].Load()})
		electors[0].Close()
		electors[0].Close()
		require.ErrorIs(t, electors[0].IsLeader(t.Context()), election.ErrNotLeader)
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, []int32{5, 5}, []int32{runs[0].Load(), runs[1].Load()})
	})
}

func TestElector_Loses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := redistest.Must(holdfasttest.New())(t)
		first := newElector(t, locks)
		require.NoError(t, first.IsLeader(t.Context()))
		second := newElector(t, locks.Another())
		require.ErrorIs(t, second.IsLeader(t.Context()), holdfast.ErrNotAcquired)
		ctx := first.Bind(t.Context())
		require.NoError(t, ctx.Err())
		synctest.Wait() // the second one waits

		require.NoError(t, locks.Lose("leader"))
		require.ErrorIs(t, first.IsLeader(t.Context()), election.ErrNotLeader)
		require.ErrorIs(t, context.Cause(ctx), holdfast.ErrLost)
		require.Error(t, first.Bind(t.Context()).Err())
		synctest.Wait()
		require.NoError(t, second.IsLeader(t.Context()))

		locks.Outage(2 * time.Minute)
		time.Sleep(holdfast.DefaultLease + time.Minute)
		require.ErrorIs(t, second.IsLeader(t.Context()), holdfast.ErrUnavailable)
		time.Sleep(time.Minute)
		require.NotEqual(t, first.IsLeader(t.Context()) == nil, second.IsLeader(t.Context()) == nil, "one is the leader again")
	})
}

func TestElector_OnRedis(t *testing.T) {
	both := redis(t)
	first := newElector(t, both[0])
	require.NoError(t, first.IsLeader(t.Context()))
	second := newElector(t, both[1])
	require.ErrorIs(t, second.IsLeader(t.Context()), holdfast.ErrNotAcquired)
	first.Close()
	require.ErrorIs(t, first.IsLeader(t.Context()), election.ErrNotLeader)
	require.Eventually(t, func() bool { return second.IsLeader(t.Context()) == nil }, redistest.Patience, time.Millisecond)
	require.NoError(t, both[1].Close())
	require.ErrorIs(t, second.IsLeader(t.Context()), holdfast.ErrClosed)
}

// A caller that does not wait for the first attempt is no leader.
func TestElector_FirstAttempt(t *testing.T) {
	locks := redistest.Must(holdfasttest.New())(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hangs := hanging{locks, make(chan struct{})}
	e := newElector(t, hangs)
	require.ErrorIs(t, e.IsLeader(ctx), context.Canceled)
	close(hangs.on)
	require.NoError(t, e.IsLeader(t.Context()))
}

// hanging is a locker whose TryLock waits.
type hanging struct {
	holdfast.Locker
	on chan struct{}
}

func (h hanging) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	<-h.on
	return h.Locker.TryLock(ctx, key, opts...)
}

package election_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/election"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestTwoCandidates(t *testing.T) {
	onAll(t, func(t *testing.T, w world) {
		a := stand(t, w.process(), holdfast.Label("a"))
		first := a.leads(t, soon)
		require.NoError(t, a.IsLeader(t.Context()))
		bound := a.Bind(t.Context())
		require.Equal(t, holdfast.LeaseFrom(first), holdfast.LeaseFrom(bound))
		b := stand(t, w.process())
		require.Equal(t, election.ErrNotLeader, context.Cause(b.Bind(t.Context())))
		err := b.IsLeader(t.Context())
		require.ErrorIs(t, err, election.ErrNotLeader)
		require.ErrorIs(t, err, holdfast.ErrNotAcquired)
		require.ErrorContains(t, err, `held by "a"`)
		s := redistest.Must(b.Leader(t.Context()))(t)
		require.Equal(t, []any{"a", holdfast.LeaseFrom(first).Owner()}, []any{s.Label, s.Owner})
		time.Sleep(long)
		require.Empty(t, b.terms)

		why := errors.New("done")
		a.returns <- why
		require.Equal(t, why, received(t, a.ended, soon))
		second := b.leads(t, soon)
		require.Error(t, first.Err())
		require.Error(t, bound.Err())
		require.Greater(t, holdfast.LeaseFrom(second).Fence(), holdfast.LeaseFrom(first).Fence())
		require.EqualError(t, a.IsLeader(t.Context()), "not the leader")

		b.cancel(nil)
		<-second.Done()
		b.returns <- nil
		require.NoError(t, received(t, b.ended, soon))
		s = redistest.Must(b.Leader(t.Context()))(t)
		require.False(t, s.Held)
	})
}

// A candidate that has lost its term campaigns again, and not before its lead has returned.
func TestLost(t *testing.T) {
	onAll(t, func(t *testing.T, w world) {
		a := stand(t, w.process())
		first := a.leads(t, soon)
		b := stand(t, w.process())
		require.Error(t, b.IsLeader(t.Context()))
		w.forget()
		received(t, first.Done(), holdfast.DefaultLease)
		require.ErrorIs(t, context.Cause(first), holdfast.ErrLost)
		require.ErrorIs(t, a.IsLeader(t.Context()), holdfast.ErrLost)

		second := b.leads(t, 2*holdfast.DefaultLease)
		b.returns <- nil
		require.NoError(t, received(t, b.ended, soon))
		time.Sleep(long)
		require.Empty(t, a.terms, "its lead has not returned")
		a.returns <- errors.New("dropped")
		third := a.leads(t, soon)
		require.NoError(t, a.IsLeader(t.Context()))
		require.Greater(t, holdfast.LeaseFrom(third).Fence(), holdfast.LeaseFrom(second).Fence())
		a.returns <- nil
		require.NoError(t, received(t, a.ended, soon))
	})
}

// The end of its context ends a term, but the next one does not begin before lead has returned.
func TestLateLeadKeepsTheLock(t *testing.T) {
	onAll(t, func(t *testing.T, w world) {
		a := stand(t, w.process())
		first := a.leads(t, soon)
		b := stand(t, w.process())
		a.cancel(nil)
		<-first.Done()
		time.Sleep(long)
		require.Empty(t, b.terms)
		a.returns <- nil
		require.NoError(t, received(t, a.ended, soon))
		b.leads(t, soon)
		b.returns <- nil
		<-b.ended
	})
}

// Nobody leads without Redis. Afterwards, however long it took, one does.
func TestRedisAway(t *testing.T) {
	onAll(t, func(t *testing.T, w world) {
		both := []*candidate{stand(t, w.process()), nil}
		first := both[0].leads(t, soon)
		both[1] = stand(t, w.process())
		require.Error(t, both[1].IsLeader(t.Context()))
		w.away(true)
		received(t, first.Done(), holdfast.DefaultLease+soon)
		require.ErrorIs(t, context.Cause(first), holdfast.ErrLost)
		both[0].returns <- context.Cause(first)
		time.Sleep(long)
		for _, c := range both {
			require.Empty(t, c.terms)
			require.ErrorIs(t, c.IsLeader(t.Context()), election.ErrNotLeader)
			require.NotErrorIs(t, c.IsLeader(t.Context()), holdfast.ErrNotAcquired)
		}
		w.away(false)
		time.Sleep(holdfast.DefaultLease)
		require.Equal(t, 1, len(both[0].terms)+len(both[1].terms))

		w.away(true) // a candidate between two attempts leaves at once
		time.Sleep(long)
		for _, c := range both {
			if len(c.terms) == 0 {
				c.cancel(nil)
				require.ErrorIs(t, received(t, c.ended, holdfast.DefaultLease), context.Canceled)
			} else {
				c.cancel(nil)
				c.returns <- nil
				<-c.ended
			}
		}
		w.away(false)
	})
}

func TestContextEndsWhileCampaigning(t *testing.T) {
	onAll(t, func(t *testing.T, w world) {
		a := stand(t, w.process())
		a.leads(t, soon)
		b := stand(t, w.process())
		time.Sleep(soon)
		b.cancel(holdfast.ErrUnavailable) // which does not mean that Redis is away
		err := received(t, b.ended, soon)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, holdfast.ErrNotAcquired)
		require.ErrorIs(t, b.IsLeader(t.Context()), election.ErrNotLeader)
		a.returns <- nil
		<-a.ended
		require.Empty(t, b.terms)
	})
}

// endsIt is a locker that finds Redis away just as the context ends.
type endsIt struct {
	holdfast.Locker
	end context.CancelFunc
}

func (l endsIt) TryLock(ctx context.Context, _ string, _ ...holdfast.LockOption) (*holdfast.Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	l.end()
	return nil, holdfast.ErrUnavailable
}

func TestContextEndsAsRedisIsAway(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	e := redistest.Must(election.New(endsIt{end: end}, "g"))(t)
	require.ErrorIs(t, e.Run(ctx, func(context.Context) error { return nil }), context.Canceled)
}

// A lead that panics or ends its goroutine resigns, and its Election can run again.
func TestLeadDoesNotReturn(t *testing.T) {
	onAll(t, func(t *testing.T, w world) {
		e := redistest.Must(election.New(w.process(), "g"))(t)
		b := stand(t, w.process())
		b.leads(t, soon)
		b.returns <- nil
		<-b.ended
		for _, leave := range []func(){func() { panic("lead") }, runtime.Goexit} {
			left := make(chan any)
			go func() {
				defer func() { left <- recover() }()
				_ = e.Run(t.Context(), func(context.Context) error { leave(); return nil })
			}()
			received(t, left, soon)
			require.EqualError(t, e.IsLeader(t.Context()), "not the leader")
			require.False(t, redistest.Must(e.Leader(t.Context()))(t).Held)
		}
		require.NoError(t, e.Run(t.Context(), func(context.Context) error { return nil }))
	})
}

// Only the loss of the term itself leads to another campaign.
func TestWhatEndsRun(t *testing.T) {
	onAll(t, func(t *testing.T, w world) {
		l := w.process()
		e := redistest.Must(election.New(l, "g"))(t)
		for _, err := range []error{nil, holdfast.ErrLost, holdfast.ErrUnavailable, holdfast.ErrUnknown} {
			require.Equal(t, err, e.Run(t.Context(), func(context.Context) error { return err }), "that of lead")
		}
		require.ErrorIs(t, e.Run(t.Context(), func(ctx context.Context) error {
			return holdfast.LeaseFrom(ctx).Unlock(ctx)
		}), holdfast.ErrReleased)

		a := stand(t, l)
		a.leads(t, soon)
		require.ErrorIs(t, a.Run(t.Context(), func(context.Context) error { return nil }), holdfast.ErrInvalidArgument)
		require.NoError(t, l.Close())
		require.ErrorIs(t, a.IsLeader(t.Context()), holdfast.ErrClosed)
		a.returns <- nil
		require.ErrorIs(t, received(t, a.ended, soon), holdfast.ErrClosed)
		require.ErrorIs(t, a.Run(t.Context(), func(context.Context) error { return nil }), holdfast.ErrClosed)
		require.ErrorIs(t, a.IsLeader(t.Context()), holdfast.ErrClosed)
	})
}

func TestBadArguments(t *testing.T) {
	locks := redistest.Must(holdfasttest.New())(t)
	_, noLocker := election.New(nil, "g")
	_, noOption := election.New(locks, "g", nil)
	_, bounded := election.New(locks, "g", holdfast.WaitAtMost(time.Second))
	e := redistest.Must(election.New(locks, ""))(t)
	for _, err := range []error{
		noLocker, noOption, bounded, e.Run(t.Context(), nil), e.Run(t.Context(), func(context.Context) error { return nil }),
	} {
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
	require.ErrorIs(t, e.IsLeader(t.Context()), holdfast.ErrInvalidArgument)
}

// plain is a locker that is no Operator, and whose first attempt takes a second.
type plain struct{ holdfast.Locker }

func (p plain) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	time.Sleep(time.Second)
	return p.Locker.TryLock(ctx, key, opts...)
}

// Until the first attempt was answered, nobody knows.
func TestIsLeaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := double(t).process()
		a := stand(t, plain{l})
		over, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, a.IsLeader(over), context.DeadlineExceeded)
		require.NoError(t, a.IsLeader(t.Context()))
		for range 64 { // no wait, whatever the context
			require.NoError(t, a.IsLeader(over))
		}
		_, err := a.Leader(t.Context())
		require.ErrorIs(t, err, errors.ErrUnsupported)
		a.returns <- nil
		require.NoError(t, <-a.ended)
	})
}

// While links and the server fail, two never lead at once. Then one leads.
func TestNeverTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const processes, lease = 3, 3 * time.Second
		w := sim.NewWorld(t, 1, processes, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var leading atomic.Int32
		var terms atomic.Int64
		for p := range processes {
			l := redistest.Must(rlock.New(w.Clients(p)[0], holdfast.WithLease(lease)))(t)
			defer l.Close()
			e := redistest.Must(election.New(l, "g"))(t)
			r := sim.Random(1, "terms "+string(rune('0'+p)))
			all.Go(func() {
				for ctx.Err() == nil {
					_ = e.Run(ctx, func(ctx context.Context) error {
						terms.Add(1)
						if leading.Add(1) > 1 {
							t.Error("two holders")
						}
						select {
						case <-ctx.Done():
						case <-time.After(time.Duration(r.Int64N(int64(20 * lease)))):
						}
						leading.Add(-1)
						return nil
					})
				}
			})
		}
		w.Play(sim.Schedule(1, processes, 1, 15*time.Minute, 10*time.Second, 3*lease, append(sim.OfLinks, sim.OfServers...)), func(sim.Fault) {})
		before := terms.Load()
		time.Sleep(time.Minute)
		require.Greater(t, terms.Load(), before, "nobody leads")
		cancel()
		all.Wait()
	})
}

package single

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/internal/racing"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// wishRig is a backend of writers, whose first owner has the lock, and a subscription of others that wait.
type wishRig struct {
	*testing.T
	server  *sim.Server
	backend *RWLock
	waiting racing.Subscription
}

func withWishes(t *testing.T, f func(r *wishRig)) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.Start(t, &sim.Network{Trip: time.Millisecond})
		c, err := engine.Configure("rwlock", "New", nil, nil)
		require.NoError(t, err)
		require.NoError(t, c.Check())
		b := newRWLock(connect(s.Client(t), c), c)
		writers := racing.New(b, c)
		defer func() { require.NoError(t, writers.Close()) }()
		r := &wishRig{T: t, server: s, backend: b}
		require.True(t, r.acquire(1))
		r.waiting = b.Subscribe("k")
		f(r)
	})
}

func (r *wishRig) acquire(n int) (ok bool) {
	reply, err := r.backend.Acquire(r.Context(), wire.AcquireRequest{Key: "k", Owner: wisher(n), Lease: time.Minute})
	require.NoError(r, err)
	return reply.OK
}

func wisher(n int) string {
	return fmt.Sprintf("11111111-1111-4111-8111-111111111111:0%d%s", n, wire.WriteSuffix)
}

// wished reports whether Redis has a wish, after the calls in the background.
func (r *wishRig) wished() bool {
	time.Sleep(100 * time.Millisecond)
	return slices.ContainsFunc(r.server.Redis().Keys(), func(key string) bool { return strings.HasPrefix(key, names.WishesPrefix) })
}

// A release that Redis gets after the last waiter has gone leaves no wish, which would keep others out.
func TestALateReleaseLeavesNoWish(t *testing.T) {
	withWishes(t, func(r *wishRig) {
		b, goOn, over := r.backend, make(chan bool), make(chan error)
		release := b.releases.one
		b.releases.one = func(ctx context.Context, e wire.RWLockReleaseRequest) (wire.ReleaseReply, error) {
			<-goOn
			return release(ctx, e)
		}
		go func() {
			_, err := b.Release(r.Context(), wire.ReleaseRequest{Key: "k", Owner: wisher(1)})
			over <- err
		}()
		synctest.Wait()
		r.waiting.Close()
		time.Sleep(100 * time.Millisecond) // the wish is withdrawn
		goOn <- true
		require.NoError(r, <-over)
		time.Sleep(100 * time.Millisecond)
		require.Empty(r, r.server.Redis().Keys())
	})
}

// A withdrawal that comes late is none, as the wish is that of the next callers that wait.
func TestALateWithdrawalLeavesTheNextWish(t *testing.T) {
	withWishes(t, func(r *wishRig) {
		require.False(r, r.acquire(2))
		r.backend.withdrawLater("k")
		require.True(r, r.wished())
		r.waiting.Close()
		require.False(r, r.wished())
	})
}

// An answer that comes late, or not at all, does not hide the wish that another attempt has noted.
func TestAnAnswerHidesNoWish(t *testing.T) {
	for name, lost := range map[string]bool{"late": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			withWishes(t, func(r *wishRig) {
				_, err := r.backend.Release(r.Context(), wire.ReleaseRequest{Key: "k", Owner: wisher(1)})
				require.NoError(r, err)
				acquire := r.backend.acquires.one
				r.backend.acquires.one = func(ctx context.Context, a wire.RWLockAcquireRequest) (wire.AcquireReply, error) {
					if lost && a.Owner == wisher(2) {
						require.True(r, r.acquire(3))
					}
					reply, err := acquire(ctx, a)
					require.NoError(r, err)
					switch {
					case a.Owner != wisher(2):
					case lost:
						return wire.AcquireReply{}, errors.New("no answer")
					default:
						require.False(r, r.acquire(3))
					}
					return reply, nil
				}
				reply, err := r.backend.Acquire(r.Context(), wire.AcquireRequest{Key: "k", Owner: wisher(2), Lease: time.Minute})
				require.Equal(r, lost, err != nil)
				require.Equal(r, !lost, reply.OK)
				require.True(r, r.wished())
				r.waiting.Close()
				require.False(r, r.wished())
			})
		})
	}
}

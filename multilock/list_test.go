package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/multilock"
)

// A lock is listed if a quorum of nodes has the same owner, whatever the others have. One of
// three nodes may be away, but not two.
func TestLocksOfAQuorum(t *testing.T) {
	t.Parallel()
	kindOf(3).InVirtualTime(t).Try(t, func(t *testing.T, k locktest.Kind) {
		r := locktest.NewHarness(t, k, locktest.Options{Lease: locktest.Long})
		lease := locktest.Lock(t, r.Other, locktest.Bounded(t), "held")
		java := func(key string, nodes ...int) {
			for _, i := range nodes {
				r.Server[i].Do(t, "HSET", key, locktest.Java, "1")
			}
		}
		java("few", 0)
		java("most", 1, 2)
		java("odd", 0, 2)
		r.Server[1].Do(t, "HSET", "odd", "name", "Ann")
		java("split", 0)
		r.Server[1].Do(t, "HSET", "split", locktest.Java+"0", "1")
		r.Server[2].Do(t, "HSET", "data", "name", "Ann")
		list := func() (owners map[string]string, last error) {
			owners = map[string]string{}
			for s, err := range r.Locker.Locks(locktest.Bounded(t), "") {
				if last = err; err == nil {
					require.NotContains(t, owners, s.Key)
					owners[s.Key] = s.Owner
				}
			}
			return owners, last
		}
		owners := locktest.Must(list())(t)
		require.Equal(t, map[string]string{"held": lease.Owner(), "most": locktest.Java, "odd": locktest.Java}, owners)

		away := func(node int) { r.Proxy.All[node].Refuse(true); r.Proxy.All[node].Cut() }
		away(1)
		owners = locktest.Must(list())(t)
		require.Equal(t, map[string]string{"held": lease.Owner(), "odd": locktest.Java}, owners)

		away(2)
		owners, err := list()
		require.Empty(t, owners)
		e := (*holdfast.QuorumError)(nil)
		require.ErrorAs(t, err, &e)
		require.Equal(t, 2, e.Need)
		require.NoError(t, e.Nodes[0].Err)
		require.Error(t, e.Nodes[1].Err)
		require.Error(t, e.Nodes[2].Err)
	})
}

// The calls of an operator end with their context, even if the nodes, which answered until now, are
// silent. A ForceUnlock may have freed the key by then.
func TestOperatorsWaitNoLongerThanTheyWant(t *testing.T) {
	const wait = 100 * time.Millisecond
	for name, call := range map[string]func(context.Context, *multilock.Locker) error{
		"Inspect":     func(ctx context.Context, l *multilock.Locker) error { _, err := l.Inspect(ctx, "k"); return err },
		"ForceUnlock": func(ctx context.Context, l *multilock.Locker) error { _, err := l.ForceUnlock(ctx, "k"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, 3, func(w world) {
				l := w.open(0, multilock.WithNodeTimeout(time.Second), multilock.WithoutRestartGuard())
				w.lock(l, "k")
				for _, s := range w.Servers {
					s.Pause()
					defer s.Resume()
				}
				ctx, cancel := context.WithTimeout(w.Context(), wait)
				defer cancel()
				began := time.Now()
				err := call(ctx, l)
				require.Equal(w, wait, time.Since(began))
				require.ErrorIs(w, err, context.DeadlineExceeded)
				require.ErrorIs(w, err, holdfast.ErrUnknown)
			})
		})
	}
}

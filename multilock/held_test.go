package multilock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/multilock"
)

// A lock that another holds is no outage, even if a minority of the nodes is away or their
// number is even: TryLock says so, and Lock waits on, beyond WithMaxOutage, until a message
// wakes it.
func TestHeldByAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nodes, away int }{{2, 0}, {3, 0}, {4, 0}, {3, 1}, {4, 1}, {5, 1}, {5, 2}} {
		t.Run(fmt.Sprintf("%d of %d away", c.away, c.nodes), func(t *testing.T) {
			t.Parallel()
			const outage = 300 * time.Millisecond
			nodes := startNodes(t, c.nodes)
			x := open(t, nodes)
			y := open(t, nodes, multilock.WithMaxOutage(outage))
			nothingHeld(t, x)
			for _, n := range nodes[c.nodes-c.away:] {
				n.Kill()
			}
			held, err := x.Lock(t.Context(), "k")
			require.NoError(t, err)
			for range 20 {
				l, err := y.TryLock(t.Context(), "k")
				require.ErrorIs(t, err, multilock.ErrNotAcquired)
				require.ErrorContains(t, err, `holdfast: lock "k": not acquired: held by another: `)
				require.Nil(t, l)
			}
			_, err = y.TryLockFor(t.Context(), "k", 3*outage)
			require.ErrorIs(t, err, multilock.ErrNotAcquired)

			got := make(chan error, 1)
			go func() {
				l, err := y.Lock(t.Context(), "k")
				if err == nil {
					err = l.Unlock(t.Context())
				}
				got <- err
			}()
			select {
			case err := <-got:
				require.Fail(t, "does not wait", "%v", err)
			case <-time.After(3 * outage):
			}
			require.NoError(t, held.Unlock(t.Context()))
			require.NoError(t, <-got)
		})
	}
}

// If too few nodes answer, and one of those says that another holds the key, a wait ends like
// an attempt.
func TestHeldSomewhereAndTooFewAnswer(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 5)
	l := open(t, nodes)
	nothingHeld(t, l)
	nodes[0].Do(t, "HSET", "k", "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:1", "1")
	nodes[3].Kill()
	nodes[4].Kill()
	wait := func() error {
		_, err := l.TryLockFor(t.Context(), "k", 500*time.Millisecond)
		return err
	}
	try := func() error {
		_, err := l.TryLock(t.Context(), "k")
		return err
	}
	// A node may still have the owner of the round before, to this round another holder.
	afterOwn := func(call func() error) (err error) {
		for range 10 {
			if err = call(); !errors.Is(err, multilock.ErrNotAcquired) {
				break
			}
		}
		return err
	}
	for range 5 { // the last round of the wait may have ended before all nodes said so
		require.ErrorIs(t, afterOwn(try), multilock.ErrUnavailable)
		var said *multilock.QuorumError
		err := afterOwn(wait)
		require.ErrorIs(t, err, multilock.ErrUnavailable)
		require.ErrorAs(t, err, &said)
	}
}

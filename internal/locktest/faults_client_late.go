package locktest

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	register("F7_AcquireArrivesAfterItsCleanUp", testAcquireArrivesLate)
	register("F7_WritesPaused", testWritesPaused)
	register("F7_NestedCallArrivesAfterTheLease", testNestedArrivesLate)
}

// delayed holds the next command of that verb back, until the proxy's Release.
// held tells that it is on its way, arrived that Redis has answered it.
func delayed(w *ways, name string) (held <-chan struct{}, arrived <-chan struct{}) {
	type ends struct{ held, arrived <-chan struct{} }
	of := map[*redistest.Proxy]ends{}
	w.each(func(p *redistest.Proxy) {
		var e ends
		e.held, e.arrived = delayedOn(p, name)
		of[p] = e
	})
	return w.onAll(func(p *redistest.Proxy) <-chan struct{} { return of[p].held }),
		w.onAll(func(p *redistest.Proxy) <-chan struct{} { return of[p].arrived })
}

func delayedOn(p *redistest.Proxy, name string) (held <-chan struct{}, arrived <-chan struct{}) {
	sent, answered := make(chan struct{}), make(chan struct{}, 1)
	var command []string
	p.OnRequest(func(cmd []string) redistest.Verdict {
		if verb(cmd) != name {
			return redistest.Pass
		}
		p.OnRequest(nil)
		command = cmd
		close(sent)
		return redistest.Hold
	})
	p.OnReply(func(cmd []string) redistest.Verdict {
		select {
		case <-sent:
			if slices.Equal(cmd, command) {
				poke(answered)
			}
		default:
		}
		return redistest.Pass
	})
	return sent, answered
}

// An acquire is held up on its way, its connection is lost, and the clean-up
// overtakes it. Whoever gave up must not be made the holder when it arrives.
func testAcquireArrivesLate(t *testing.T, d Kind) {
	for name, how := range map[string]struct {
		fenced bool
		cancel bool
	}{
		"given up":          {false, false},
		"given up, fenced":  {true, false},
		"cancelled":         {false, true},
		"cancelled, fenced": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s sockets
			r := newFaultRig(t, d, Options{Lease: long, Fencing: how.fenced}, s.dialled)
			held, arrived := delayed(r.proxy, "acquire")
			ctx, cancel := context.WithCancel(bounded(t))
			defer cancel()
			result := make(chan error, 1)
			go func() {
				_, err := r.locker.TryLock(ctx, "k")
				result <- err
			}()
			within(t, held)
			if how.cancel {
				cancel()
				require.ErrorIs(t, within(t, result), context.Canceled)
				s.drop()
			} else {
				s.drop()
				require.ErrorIs(t, within(t, result), holdfast.ErrUnknown)
			}
			await(t, func() bool { return tombstones(r) == 1 })
			r.proxy.Release()
			within(t, arrived)
			require.False(t, exists(t, r.server, "k"))
			l := lock(t, r.locker, bounded(t), "k")
			require.NoError(t, l.Unlock(bounded(t)))
			r.tidy("k")
		})
	}
}

// tombstones is how many owners have been given up by a clean-up, on every node.
func tombstones(r *faultRig) int {
	least := math.MaxInt
	r.server.each(func(s *redistest.Server) {
		m := s.Do(r.t, "KEYS", "holdfast_gone:*")
		keys, err := m.AsStrSlice()
		require.NoError(r.t, err)
		least = min(least, len(keys))
	})
	return least
}

// While Redis delays all writes, a Lock is cancelled: the acquire is carried out
// with the delayed ones, and its clean-up after it.
func testWritesPaused(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long})
	require.NoError(t, lock(t, r.locker, bounded(t), "k").Unlock(bounded(t))) // a quorum's node has to be known first
	r.server.Do(t, "CLIENT", "PAUSE", "700", "WRITE")
	ctx, cancel := context.WithTimeout(bounded(t), 50*time.Millisecond)
	defer cancel()
	_, err := r.locker.Lock(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	if d.Nodes == 0 { // a quorum cleans up when it knows what came of the acquire, or that it may never know
		await(t, func() bool { return tombstones(r) == 1 })
		require.False(t, exists(t, r.server, "k"))
	}
	require.NoError(t, lock(t, r.locker, bounded(t), "k").Unlock(bounded(t)))
	r.tidy("k")
}

// A nested call arrives when its lease is over and somebody else holds the key.
func testNestedArrivesLate(t *testing.T, d Kind) {
	var s sockets
	r := newFaultRig(t, d, Options{Lease: long}, s.dialled)
	l := lock(t, r.locker, bounded(t), "k")
	held, arrived := delayed(r.proxy, "recount")
	result := make(chan error, 1)
	go func() {
		_, err := r.locker.TryLock(l.Bind(bounded(t)), "k")
		result <- err
	}()
	within(t, held)
	s.drop()
	require.ErrorIs(t, within(t, result), holdfast.ErrUnknown)
	require.NoError(t, l.Unlock(bounded(t)))
	after := lock(t, r.locker, bounded(t), "k")
	r.proxy.Release()
	within(t, arrived)
	require.Equal(t, 1, r.entries("k"))
	require.NoError(t, after.Unlock(bounded(t)))
	r.tidy("k")
}

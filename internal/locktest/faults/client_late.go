package faults

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	register("F7_AcquireArrivesAfterItsCleanUp", testAcquireArrivesLate).parts = true
	register("F7_WritesPaused", testWritesPaused).real = true
	register("F7_NestedCallArrivesAfterTheLease", testNestedArrivesLate)
}

// delayed holds the next command of that verb back, until the proxy's Release.
// held tells that it is on its way, arrived that Redis has answered it.
func delayed(w *Proxies, name string) (held <-chan struct{}, arrived <-chan struct{}) {
	type ends struct{ held, arrived <-chan struct{} }
	of := map[*redistest.Proxy]ends{}
	w.Each(func(p *redistest.Proxy) {
		var e ends
		e.held, e.arrived = delayedOn(p, name)
		of[p] = e
	})
	return w.OnAll(func(p *redistest.Proxy) <-chan struct{} { return of[p].held }),
		w.OnAll(func(p *redistest.Proxy) <-chan struct{} { return of[p].arrived })
}

func delayedOn(p *redistest.Proxy, name string) (held <-chan struct{}, arrived <-chan struct{}) {
	sent, answered := make(chan struct{}), make(chan struct{}, 1)
	var command []string
	p.OnRequest(func(cmd []string) redistest.Verdict {
		if Verb(cmd) != name {
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
				Poke(answered)
			}
		default:
		}
		return redistest.Pass
	})
	return sent, answered
}

// An acquire is held up on its way, its connection is lost, and the clean-up overtakes it.
// The caller has given up, and must not become the holder when the acquire arrives.
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
		d.Part(t, name, func(t *testing.T, d Kind) {
			var s Sockets
			r := newHarness(t, d, Options{Lease: Long, Fencing: how.fenced}, s.Dialled)
			held, arrived := delayed(r.Proxy, "acquire")
			ctx, cancel := context.WithCancel(Bounded(t))
			defer cancel()
			result := make(chan error, 1)
			go func() {
				_, err := r.Locker.TryLock(ctx, "k")
				result <- err
			}()
			Within(t, held)
			if how.cancel {
				cancel()
				require.ErrorIs(t, Within(t, result), context.Canceled)
				s.Drop()
			} else {
				s.Drop()
				require.ErrorIs(t, Within(t, result), holdfast.ErrUnknown)
			}
			Await(t, func() bool { return tombstones(r) == 1 })
			r.Proxy.Release()
			Within(t, arrived)
			require.False(t, Exists(t, r.Server, "k"))
			l := Lock(t, r.Locker, Bounded(t), "k")
			require.NoError(t, l.Unlock(Bounded(t)))
			r.Tidy("k")
		})
	}
}

// tombstones is how many owners have been given up by a clean-up, on every node.
func tombstones(r *harness) int {
	least := math.MaxInt
	r.Server.Each(func(s Server) {
		m := s.Do(r.T, "KEYS", "holdfast_gone:*")
		keys, err := m.AsStrSlice()
		require.NoError(r.T, err)
		least = min(least, len(keys))
	})
	return least
}

// While Redis delays all writes, a Lock is cancelled: the acquire is carried out
// with the delayed ones, and its clean-up after it.
func testWritesPaused(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long})
	require.NoError(t, Lock(t, r.Locker, Bounded(t), "k").Unlock(Bounded(t))) // a quorum's node has to be known first
	r.Server.Do(t, "CLIENT", "PAUSE", "700", "WRITE")
	ctx, cancel := context.WithTimeout(Bounded(t), 50*time.Millisecond)
	defer cancel()
	_, err := r.Locker.Lock(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	if d.Nodes == 0 { // a quorum cleans up when it knows what came of the acquire, or that it may never know
		Await(t, func() bool { return tombstones(r) == 1 })
		require.False(t, Exists(t, r.Server, "k"))
	}
	require.NoError(t, Lock(t, r.Locker, Bounded(t), "k").Unlock(Bounded(t)))
	r.Tidy("k")
}

// A nested call arrives when its lease is over and another owner holds the key.
func testNestedArrivesLate(t *testing.T, d Kind) {
	var s Sockets
	r := newHarness(t, d, Options{Lease: Long}, s.Dialled)
	l := Lock(t, r.Locker, Bounded(t), "k")
	held, arrived := delayed(r.Proxy, "recount")
	result := make(chan error, 1)
	go func() {
		_, err := r.Locker.TryLock(l.Bind(Bounded(t)), "k")
		result <- err
	}()
	Within(t, held)
	s.Drop()
	require.ErrorIs(t, Within(t, result), holdfast.ErrUnknown)
	require.NoError(t, l.Unlock(Bounded(t)))
	after := Lock(t, r.Locker, Bounded(t), "k")
	r.Proxy.Release()
	Within(t, arrived)
	require.Equal(t, 1, r.Entries("k"))
	require.NoError(t, after.Unlock(Bounded(t)))
	r.Tidy("k")
}

package semaphore_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/semaphore"
)

// world is a server in virtual time, of which each locker has a client of its own.
type world struct {
	t      *testing.T
	net    *sim.Network
	server *sim.Server
}

// inVirtualTime runs a test in a bubble. A request or a reply takes 20 µs.
func inVirtualTime(t *testing.T, run func(t *testing.T, w *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: &sim.Network{Trip: 20 * time.Microsecond}}
		w.server = sim.Start(t, w.net)
		run(t, w)
	})
}

func (w *world) open(n int, opts ...holdfast.Option) *semaphore.Locker {
	w.t.Helper()
	return locktest.Opened(semaphore.New(w.server.Client(w.t), n, opts...))(w.t)
}

// loadScripts has the server know all scripts, so that a call takes one round trip.
func (w *world) loadScripts() {
	for _, text := range scripts.Scripts() {
		w.server.Do(w.t, "SCRIPT", "LOAD", text)
	}
}

// holders counts how many hold at once.
type holders struct {
	now, most atomic.Int32
}

func (h *holders) hold(d time.Duration) {
	n := h.now.Add(1)
	for most := h.most.Load(); n > most && !h.most.CompareAndSwap(most, n); most = h.most.Load() {
	}
	time.Sleep(d)
	h.now.Add(-1)
}

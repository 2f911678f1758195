package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Locker is that of a lock kind, with all that it has.
type Locker interface {
	holdfast.Locker
	holdfast.Operator
}

// World is servers, and processes with a link to each of them.
type World struct {
	t       testing.TB
	net     Network
	Servers []*Server
	Links   [][]*Link // of each process, to each server
}

// Trip is the time that a request or a reply takes, at least and at most.
var Trip = [2]time.Duration{100 * time.Microsecond, time.Millisecond}

// NewWorld makes a world in which requests and replies take random times, by the seed.
func NewWorld(t testing.TB, seed uint64, processes, servers int) *World {
	t.Helper()
	w := &World{t: t}
	for range servers {
		w.Servers = append(w.Servers, Start(t, &w.net))
	}
	for p := range processes {
		var links []*Link
		for i, s := range w.Servers {
			links = append(links, w.link(s, Random(seed, fmt.Sprint("link ", p, i))))
		}
		w.Links = append(w.Links, links)
	}
	return w
}

// Random is a source for one use of a seed. Others of that seed do not depend on how much of it
// is used.
func Random(seed uint64, use string) *rand.Rand {
	var key [32]byte
	copy(key[:], fmt.Sprintf("%016x%s", seed, use))
	return rand.New(rand.NewChaCha8(key))
}

// Clients are those of a process, one for each server.
func (w *World) Clients(process int, change ...func(*rueidis.ClientOption)) (all []rueidis.Client) {
	w.t.Helper()
	for i, s := range w.Servers {
		through := func(o *rueidis.ClientOption) { o.InitAddress = []string{w.Links[process][i].Addr()} }
		all = append(all, s.Client(w.t, append([]func(*rueidis.ClientOption){through}, change...)...))
	}
	return all
}

// Healthy says since when all links of a process and all servers are well; false: one is not.
func (w *World) Healthy(process int) (since time.Time, ok bool) {
	for _, l := range w.Links[process] {
		at, ok := l.Healthy()
		if !ok {
			return at, false
		}
		if at.After(since) {
			since = at
		}
	}
	return since, true
}

// Link is a proxy that knows when its last fault was over. A fault of the server is one of all
// its links.
type Link struct {
	*redistest.Proxy
	mu      sync.Mutex
	faults  int       // that have begun and not ended; guarded by mu
	healthy time.Time // end of the last; guarded by mu
}

func (w *World) link(s *Server, r *rand.Rand) *Link {
	l := &Link{Proxy: redistest.NewProxyOn(w.t, &w.net, s.Addr()), healthy: time.Now()}
	var mu sync.Mutex
	l.SetJitter(func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return Trip[0] + time.Duration(r.Int64N(int64(Trip[1]-Trip[0])))
	})
	return l
}

// Healthy says since when nothing disturbs the link; false: something does.
func (l *Link) Healthy() (since time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.healthy, l.faults == 0
}

// begin and end note a fault.
func (l *Link) begin() { l.note(1) }
func (l *Link) end()   { l.note(-1) }

func (l *Link) note(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults += more
	l.healthy = time.Now()
}

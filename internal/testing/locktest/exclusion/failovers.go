package exclusion

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Failover is the time in which servers took over from one another, as far as it can be
// seen: from when all had their roles to when all have theirs again. Writes of its keys may
// have been lost in it, and two masters may have taken some.
type Failover struct {
	keys     map[string]bool
	from, to time.Duration
	told     time.Duration // the latest deadline of a hold that is lost: its first renewal after to is told so
}

// watch notes failovers, by what servers say of themselves.
type watch struct {
	t    *testing.T
	site *site
	stop chan struct{}
	all  sync.WaitGroup

	mu      sync.Mutex
	masters []bool                                // which servers said that they are
	silent  []bool                                // which gave no answer: nobody knows what they will say next
	asked   []time.Duration                       // when they were asked for that
	owners  map[string]map[*redistest.Server]bool // all that were noted: an old one may take itself for a master again
	changed map[*redistest.Server]bool            // since all had their roles
	begun   time.Duration                         // of a failover that is under way; 0: none is
	over    []seen
}

// seen is a failover with the servers that took part, until its keys are known.
type seen struct {
	Failover
	of map[*redistest.Server]bool
}

func newWatch(t *testing.T, s *site) *watch {
	now := locktest.Clock()
	w := &watch{
		t: t, site: s, stop: make(chan struct{}), masters: make([]bool, len(s.servers)), silent: make([]bool, len(s.servers)),
		owners: map[string]map[*redistest.Server]bool{},
		asked:  slices.Repeat([]time.Duration{now}, len(s.servers)), changed: map[*redistest.Server]bool{}, begun: now,
	}
	if s.masters == 0 { // none takes over from another
		return w
	}
	for i := range s.servers {
		w.all.Go(func() {
			for tick := time.NewTicker(20 * time.Millisecond); ; {
				select {
				case <-tick.C:
					w.ask(i)
				case <-w.stop:
					tick.Stop()
					return
				}
			}
		})
	}
	w.settled()
	w.over = nil // that they got their roles
	return w
}

// ask asks one server whether it is a master. One that stands still is what it last was.
func (w *watch) ask(i int) {
	now := locktest.Clock()
	m, _ := w.site.servers[i].TryDo("ROLE")
	reply, _ := m.ToArray()
	master := false
	if len(reply) > 0 {
		role, _ := reply[0].ToString()
		master = role == "master"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.masters[i] != master {
		if w.begun == 0 {
			w.begun = slices.Min(w.asked)
		}
		w.masters[i], w.changed[w.site.servers[i]] = master, true
	}
	w.asked[i], w.silent[i] = now, len(reply) == 0
	masters := 0
	for _, is := range w.masters {
		if is {
			masters++
		}
	}
	if w.begun != 0 && masters == w.site.masters && !slices.Contains(w.silent, true) {
		to := locktest.Clock()
		w.over = append(w.over, seen{Failover{map[string]bool{}, w.begun, to, to + w.site.lease}, w.changed})
		w.begun, w.changed = 0, map[*redistest.Server]bool{}
	}
}

// settled returns when all servers have their roles, and notes which keys the last
// failovers were of.
func (w *watch) settled() {
	if w.site.masters == 0 {
		return
	}
	w.site.settle()
	locktest.Await(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.begun == 0
	})
	now := map[string]*redistest.Server{}
	for _, key := range keyNames(w.site.keys) {
		now[key] = w.site.owner(key)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, owner := range now {
		if w.owners[key] == nil {
			w.owners[key] = map[*redistest.Server]bool{}
		}
		w.owners[key][owner] = true
		for _, f := range w.over {
			for of := range f.of {
				if w.owners[key][of] {
					f.keys[key] = true
				}
			}
		}
	}
	for _, f := range w.over {
		clear(f.of)
	}
}

// failovers are those that there were.
func (w *watch) failovers() (all []Failover) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.over {
		all = append(all, f.Failover)
	}
	return all
}

func (w *watch) close() {
	close(w.stop)
	w.all.Wait()
}

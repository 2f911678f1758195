package campaign_test

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/sim"
)

// look is how often the monitor looks at the servers.
const look = 20 * time.Millisecond

// monitor measures progress: how long each key is free, or held by nobody, although a waiter
// could have it.
type monitor struct {
	j     *judge
	free  map[string][]time.Time // since when it is free, by server; zero: it is not
	lost  map[string]time.Time   // since when it is held by nobody; zero: it is not
	votes []time.Time            // since when each server has its vote
}

// run looks until stop is closed.
func (m *monitor) run(stop <-chan struct{}) {
	m.free, m.lost = make(map[string][]time.Time), make(map[string]time.Time)
	for name := range m.j.keys {
		m.free[name] = make([]time.Time, len(m.j.c.world.Servers))
	}
	for ticker := time.NewTicker(look); ; {
		select {
		case <-ticker.C:
			m.j.mu.Lock()
			m.look()
			m.j.mu.Unlock()
		case <-stop:
			ticker.Stop()
			return
		}
	}
}

func (m *monitor) look() {
	c, now := m.j.c, time.Now()
	m.votes = m.votes[:0]
	for _, s := range c.world.Servers {
		m.votes = append(m.votes, c.votes(s))
	}
	for name, k := range m.j.keys {
		for i, s := range c.world.Servers {
			if c.taken(s, name) {
				m.free[name][i] = time.Time{}
			} else if m.free[name][i].IsZero() {
				m.free[name][i] = now
			}
		}
		believers, believing := map[int]bool{}, 0
		for h := range k.holders {
			if h.believes() {
				believers[h.process] = true
				believing++
			}
		}
		for w := range k.waiters {
			if believers[w.process] && c.permits == 1 {
				continue // it waits for a handover
			}
			if d := m.idle(name, w, now); d > 0 {
				m.j.free.note(d, name+" "+w.who+" at "+now.Sub(c.began).String())
				if d > c.bound.free && d <= c.bound.free+look {
					m.j.breaks("FREE %s: for %v, while %s waits for %v", name, d, w.who, now.Sub(w.since))
				}
			}
		}
		m.orphan(name, k, believing >= c.permitsOf(name), now)
	}
}

// taken reports whether nobody can take the key on a server.
func (c *campaign) taken(s *sim.Server, name string) bool {
	if c.kind != "semaphore" {
		return s.Redis().Exists(name)
	}
	live := 0
	for _, end := range s.Scores(name) {
		if time.Now().UnixMilli() < int64(end) {
			live++
		}
	}
	return live >= c.permitsOf(name)
}

// idle is how long enough servers have been free for a waiter that could reach them.
func (m *monitor) idle(name string, w *waiter, now time.Time) time.Duration {
	var since []time.Time
	for i := range m.votes {
		well, ok := m.j.c.world.Links[w.process][i].Healthy()
		if ok && !m.free[name][i].IsZero() && m.votes[i].Before(now) {
			since = append(since, latest(w.since, well, m.free[name][i], m.votes[i]))
		}
	}
	need := m.j.c.need()
	if len(since) < need {
		return 0
	}
	slices.SortFunc(since, time.Time.Compare)
	return now.Sub(since[need-1])
}

// orphan measures how long a key is held by nobody on so many servers that nobody can have it.
func (m *monitor) orphan(name string, k *key, believed bool, now time.Time) {
	c, free, voting := m.j.c, 0, 0
	for i := range m.votes {
		if m.votes[i].Before(now) {
			voting++
			if !m.free[name][i].IsZero() {
				free++
			}
		}
	}
	if believed || len(k.waiters) == 0 || voting < c.need() || free >= c.need() || k.taking > 0 || now.Before(k.blind) {
		m.lost[name] = time.Time{}
		return
	}
	if m.lost[name].IsZero() {
		m.lost[name] = now
	}
	since := latest(m.lost[name], k.forced)
	for p := range c.world.Links {
		well, ok := c.world.Healthy(p)
		if !ok {
			return
		}
		since = latest(since, well)
	}
	d := now.Sub(since)
	m.j.orphan.note(d, name+" at "+now.Sub(c.began).String())
	if d > c.bound.orphan && d <= c.bound.orphan+look {
		m.j.breaks("ORPHAN %s: held by nobody for %v, while %d wait", name, d, len(k.waiters))
	}
}

func latest(ts ...time.Time) (last time.Time) {
	for _, t := range ts {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// votes is since when a server has its vote.
func (c *campaign) votes(s *sim.Server) time.Time {
	if began := s.Began(); c.guard && !began.IsZero() {
		return began.Add(c.lease*102/100 + time.Second)
	}
	return time.Time{}
}

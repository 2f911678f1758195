package campaign_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sum is of several campaigns. Safe for concurrent use.
type sum struct {
	mu             sync.Mutex
	life           time.Duration
	grants, faults int
	calls          map[string]int
	free, orphan   figure // by kind
}

func (s *sum) add(c *campaign) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life += c.length
	s.grants += c.judge.grants
	s.faults += c.played
	for what, n := range c.judge.calls {
		s.calls[what] += n
	}
	s.free.note(c.judge.free.longest, fmt.Sprint(c.kind, ", seed ", c.seed, ", ", c.judge.free.where))
	s.orphan.note(c.judge.orphan.longest, fmt.Sprint(c.kind, ", seed ", c.seed, ", ", c.judge.orphan.where))
}

func (s *sum) String() string {
	return fmt.Sprintf("%v of life, %d grants, %d faults; a key was free for a healthy waiter for %v, or %.0f round trips (%s), held by nobody for %v (%s); %v",
		s.life, s.grants, s.faults, s.free.longest, float64(s.free.longest)/float64(trip), s.free.where,
		s.orphan.longest, s.orphan.where, s.calls)
}

// Lockers of each kind keep their promises whatever happens to links and servers. These are
// short; make sim hunts for longer.
func TestG1_Campaigns(t *testing.T) {
	all := &sum{calls: make(map[string]int)}
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			these := &sum{calls: make(map[string]int)}
			t.Cleanup(func() { t.Log(these) })
			for seed := *first; seed < *first+*seeds; seed++ {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					c := newCampaign(kind, seed, *length/kinds[kind].cost)
					synctest.Test(t, c.run)
					t.Log(c.report())
					for _, b := range c.judge.broken {
						t.Errorf("%v: %s", c, b)
					}
					these.add(c)
					all.add(c)
				})
			}
		})
	}
	t.Log(all)
	if all.life < *life || all.grants < *grants || all.faults < *faults {
		t.Errorf("less than wanted: %v of life, %d grants, %d faults", *life, *grants, *faults)
	}
	if *life > 0 {
		for _, what := range asked {
			if all.calls[what] == 0 {
				t.Errorf("nobody asked for: %s", what)
			}
		}
	}
}

package watchdog

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// believer is what the model knows of one hold. Its fields are guarded by mu of the model.
type believer struct {
	*held
	fixed    bool      // not renewed
	bound    time.Time // MaxHold
	deadline time.Time // by the trust formula
	flights  []time.Time
	notOurs  bool
	gone     time.Time // when it was forgotten, or ended
}

// model follows a watchdog by the rules of its documentation, written down a second time.
type model struct {
	*harness
	t    *testing.T
	kind bool       // every answer is yes, and in time
	user *rand.Rand // owned by run

	mu   sync.Mutex
	says *rand.Rand          // guarded by mu: what the server does
	know map[*held]*believer // guarded by mu
	ends map[error]int       // guarded by mu: how often each reason was told
	yes  int                 // guarded by mu: renewals
}

func TestG2_RandomModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	total := map[error]int{}
	yes := 0
	for run := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			m := &model{
				t:    t,
				user: rand.New(rand.NewPCG(seed, run)),
				says: rand.New(rand.NewPCG(run, seed)),
				kind: run%3 == 0,
				know: map[*held]*believer{},
				ends: map[error]int{},
			}
			m.run()
			yes += m.yes
			for why, n := range m.ends {
				total[why] += n
			}
		})
	}
	t.Logf("%d renewals, ends %v", yes, total)
	require.Greater(t, yes, 2000)
	require.Len(t, total, 4, "some kind of end did not occur")
}

func (m *model) run() {
	c := Config[*held]{batch: 1 + m.user.IntN(12), parallel: 2 + m.user.IntN(6)}
	if m.kind {
		c = Config[*held]{batch: 12, parallel: 12} // no call waits for another
	}
	m.harness = newHarness(m.t, m.answer, c)
	defer m.Close()
	var holds []*believer
	for range 400 {
		switch n := m.user.IntN(10); {
		case n < 2 && len(holds) < 60:
			holds = append(holds, m.take())
		case n == 2 && len(holds) > 0:
			i := m.user.IntN(len(holds))
			m.forget(holds[i])
			holds = slices.Delete(holds, i, i+1)
		}
		pass(time.Duration(m.user.Int64N(int64(lease / 10))))
		m.check()
	}
}

// take watches a hold on random terms.
func (m *model) take() *believer {
	terms := Terms{
		Anchor: time.Now().Add(-time.Duration(m.user.Int64N(int64(time.Second)))),
		Lease:  lease - time.Duration(m.user.Int64N(int64(lease/2))),
		Renew:  m.kind || m.user.IntN(5) > 0,
	}
	b := &believer{held: &held{}, fixed: !terms.Renew, bound: terms.Anchor.Add(math.MaxInt64)}
	if m.user.IntN(3) == 0 {
		terms.MaxHold = time.Second + time.Duration(m.user.Int64N(int64(4*lease)))
		b.bound = terms.Anchor.Add(terms.MaxHold)
	}
	b.deadline = terms.Anchor.Add(terms.Lease - Margin(terms.Lease))
	if b.bound.Before(b.deadline) {
		b.deadline = b.bound
	}
	b.onLoss = func() { m.ended(b) }
	m.mu.Lock()
	m.know[b.held] = b
	m.mu.Unlock()
	m.Watch(b.held, terms)
	return b
}

func (m *model) forget(b *believer) {
	m.mu.Lock()
	want := b.gone.IsZero() && time.Now().Before(b.deadline)
	b.gone = time.Now()
	m.mu.Unlock()
	require.Equal(m.t, want, m.Forget(b.held))
	require.False(m.t, m.Forget(b.held), "again")
}

// answer is the server: it takes its time and says anything.
func (m *model) answer(c attempt) {
	m.mu.Lock()
	for _, h := range c.holds {
		b := m.know[h]
		if !c.start.Before(b.deadline) {
			m.t.Error("renewed after its deadline")
		}
		if !b.gone.IsZero() && c.start.After(b.gone) {
			m.t.Error("renewed after it was gone")
		}
		for _, flight := range b.flights {
			if c.start.Sub(flight) < limit {
				m.t.Error("attempts overlap")
			}
		}
		b.flights = append(b.flights, c.start)
	}
	delay := time.Duration(m.says.Int64N(int64(limit)))
	if !m.kind {
		delay = []time.Duration{0, delay / 20, delay, 8 * delay}[m.says.IntN(4)]
	}
	patient := m.says.IntN(2) == 0
	m.mu.Unlock()

	if patient {
		time.Sleep(delay)
	} else {
		select {
		case <-time.After(delay):
		case <-c.ctx.Done():
		}
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	for i, h := range c.holds {
		b := m.know[h]
		b.flights = slices.DeleteFunc(b.flights, c.start.Equal)
		switch n := m.says.IntN(20); {
		case m.kind || n < 12:
			c.answers[i] = Renewed
			m.yes++
			until := c.start.Add(trusted)
			if b.bound.Before(until) {
				until = b.bound
			}
			if b.gone.IsZero() && time.Now().Before(b.deadline) && until.After(b.deadline) {
				b.deadline = until
			}
		case n == 12:
			c.answers[i] = NotOurs
			b.notOurs = true
		}
	}
}

// ended is called for each end that is told.
func (m *model) ended(b *believer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !b.gone.IsZero() {
		m.t.Error("told of the end of a hold that is gone")
	}
	b.gone = time.Now()
	m.ends[b.why]++
	switch b.why {
	case ErrNotOurs:
		if !b.notOurs {
			m.t.Error("nobody said so")
		}
	case ErrMaxHold:
		if !b.at.Equal(b.bound) || !b.deadline.Equal(b.bound) {
			m.t.Errorf("ended at %v, not at %v", b.at, b.bound)
		}
	case ErrDeadline, ErrFixedLease:
		if b.fixed != (b.why == ErrFixedLease) || !b.at.Equal(b.deadline) || b.deadline.Equal(b.bound) || m.kind {
			m.t.Errorf("ended at %v, not at %v", b.at, b.deadline)
		}
	}
}

// check compares all holds with the model, when nothing else is going on.
func (m *model) check() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, b := range m.know {
		require.Equal(m.t, b.gone.IsZero(), b.Alive())
		require.False(m.t, b.Alive() && !now.Before(b.deadline))
		require.False(m.t, b.Alive() && b.notOurs, "not told")
		require.True(m.t, b.deadline.Equal(b.Deadline()))
	}
}

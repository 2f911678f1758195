package watchdog_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	lease   = 30 * time.Second
	limit   = lease / 6                              // time limit of a call
	trusted = lease - lease/100 - 2*time.Millisecond // after the start of an attempt
)

// held is a hold under test. Its fields are guarded by mu of the harness.
type held struct {
	watchdog.Lease
	id     int
	why    error     // why it ended by itself
	at     time.Time // when
	onLoss func()
}

// attempt is one call of Renew.
type attempt struct {
	start time.Time
	holds []*held
	limit time.Time // deadline of its context
}

// harness is a watchdog whose calls of Renew and Ended are recorded.
type harness struct {
	*watchdog.Watchdog[*held]
	t     *testing.T
	began time.Time

	mu       sync.Mutex
	attempts []*attempt // guarded by mu
	created  int        // guarded by mu
}

// server answers the n-th call, counted from 0.
type server func(ctx context.Context, n int, holds []*held, answers []watchdog.Answer)

// newHarness starts a watchdog, which the test has to Close.
func newHarness(t *testing.T, s server, c watchdog.Config[*held]) *harness {
	r := &harness{t: t, began: time.Now()}
	if c.Lease == 0 {
		c.Lease = lease
	}
	c.Renew = func(ctx context.Context, holds []*held, answers []watchdog.Answer) {
		a := &attempt{start: time.Now(), holds: slices.Clone(holds)}
		a.limit, _ = ctx.Deadline()
		r.mu.Lock()
		n := len(r.attempts)
		r.attempts = append(r.attempts, a)
		r.mu.Unlock()
		s(ctx, n, holds, answers)
	}
	c.Ended = func(h *held, why error) {
		r.mu.Lock()
		twice := h.why
		h.why, h.at = why, time.Now()
		r.mu.Unlock()
		if twice != nil {
			t.Errorf("hold %d ended twice: %v, %v", h.id, twice, why)
		}
		if h.Alive() {
			t.Errorf("hold %d is alive when its end is told", h.id)
		}
		if h.onLoss != nil {
			h.onLoss()
		}
	}
	r.Watchdog = watchdog.New(c)
	return r
}

// inBubble runs a test in virtual time with a harness; the zero Config will do.
func inBubble(t *testing.T, s server, test func(t *testing.T, r *harness), c ...watchdog.Config[*held]) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, s, append(c, watchdog.Config[*held]{})[0])
		defer r.Close()
		test(t, r)
	})
}

// hold watches a new hold from now on. Zero Terms mean a renewed hold with the lease of the harness.
func (r *harness) hold(t watchdog.Terms) *held {
	h := &held{}
	r.mu.Lock()
	h.id = r.created
	r.created++
	r.mu.Unlock()
	if t == (watchdog.Terms{}) {
		t.Renew = true
	}
	if t.Lease == 0 {
		t.Lease = lease
	}
	if t.Anchor.IsZero() {
		t.Anchor = time.Now()
	}
	r.Watch(h, t)
	return h
}

// take watches n holds, evenly spread over the given time.
func (r *harness) take(n int, over time.Duration) []*held {
	holds := make([]*held, n)
	for i := range holds {
		holds[i] = r.hold(watchdog.Terms{})
		pass(over / time.Duration(n))
	}
	return holds
}

// starts tells when h was tried, counted from the start of the watchdog.
func (r *harness) starts(h *held) (at []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attempts {
		for _, other := range a.holds {
			if other == h {
				at = append(at, a.start.Sub(r.began))
			}
		}
	}
	return at
}

// calls tells how many calls there have been.
func (r *harness) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.attempts)
}

// ended checks that h ended at the given instant for the given reason.
func (r *harness) ended(h *held, why error, at time.Time) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Equal(r.t, why, h.why)
	require.Equal(r.t, at, h.at)
	require.False(r.t, h.Alive())
}

// lives checks that h is alive and trusted up to the given instant.
func (r *harness) lives(h *held, deadline time.Time) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NoError(r.t, h.why)
	require.True(r.t, h.Alive())
	require.Equal(r.t, deadline, h.Deadline())
}

// pass lets virtual time pass and everything happen that is due by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func all(answers []watchdog.Answer, a watchdog.Answer) {
	for i := range answers {
		answers[i] = a
	}
}

func renewAll(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
	all(answers, watchdog.Renewed)
}

func answerNothing(context.Context, int, []*held, []watchdog.Answer) {}

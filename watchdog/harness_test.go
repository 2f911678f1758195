package watchdog

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	lease   = 30 * time.Second
	limit   = lease / 6                              // time limit of a call
	trusted = lease - lease/100 - 2*time.Millisecond // after the start of an attempt
)

// held is a hold under test.
type held struct {
	Lease
	id     int
	why    error     // why it ended by itself; guarded by record of the harness
	at     time.Time // when; guarded by record of the harness
	onLoss func()
}

// attempt is one call of Renew.
type attempt struct {
	*harness
	ctx     context.Context
	n       int // of those before it
	start   time.Time
	holds   []*held
	answers []Answer
}

func (c attempt) all(a Answer) {
	for i := range c.answers {
		c.answers[i] = a
	}
}

// harness is a watchdog whose calls of Renew and Ended are recorded.
type harness struct {
	*Watchdog[*held]
	t       *testing.T
	began   time.Time
	hang    chan struct{} // closed by answer
	created int

	record   sync.Mutex
	attempts []attempt // guarded by record
}

// newHarness starts a watchdog, which the test has to Close. server answers its calls.
func newHarness(t *testing.T, server func(attempt), c Config[*held]) *harness {
	r := &harness{t: t, began: time.Now(), hang: make(chan struct{})}
	if c.Lease == 0 {
		c.Lease = lease
	}
	c.Renew = func(ctx context.Context, holds []*held, answers []Answer) {
		r.record.Lock()
		c := attempt{r, ctx, len(r.attempts), time.Now(), slices.Clone(holds), answers}
		r.attempts = append(r.attempts, c)
		r.record.Unlock()
		server(c)
	}
	c.Ended = func(h *held, why error) {
		r.record.Lock()
		twice := h.why
		h.why, h.at = why, time.Now()
		r.record.Unlock()
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
	r.Watchdog = New(c)
	return r
}

// inBubble runs a test in virtual time with a harness; the zero Config will do.
func inBubble(t *testing.T, server func(attempt), test func(t *testing.T, r *harness), c ...Config[*held]) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, server, append(c, Config[*held]{})[0])
		defer r.Close()
		test(t, r)
	})
}

// hold watches a new hold from now on. Zero Terms mean a renewed hold with the lease of the harness.
func (r *harness) hold(t Terms) *held {
	h := &held{id: r.created}
	r.created++
	if t == (Terms{}) {
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
		holds[i] = r.hold(Terms{})
		pass(over / time.Duration(n))
	}
	return holds
}

// made are the calls of Renew so far.
func (r *harness) made() []attempt {
	r.record.Lock()
	defer r.record.Unlock()
	return slices.Clone(r.attempts)
}

// starts tells when h was tried, counted from the start of the watchdog.
func (r *harness) starts(h *held) (at []time.Duration) {
	for _, c := range r.made() {
		if slices.Contains(c.holds, h) {
			at = append(at, c.start.Sub(r.began))
		}
	}
	return at
}

// ended checks that h ended for the given reason, that long after the start of the watchdog.
func (r *harness) ended(h *held, why error, after time.Duration) {
	r.t.Helper()
	r.record.Lock()
	defer r.record.Unlock()
	require.Equal(r.t, why, h.why)
	require.Equal(r.t, r.began.Add(after), h.at)
	require.False(r.t, h.Alive())
}

// lives checks that h is alive, and trusted up to that long after the start of the watchdog.
func (r *harness) lives(h *held, until time.Duration) {
	r.t.Helper()
	r.record.Lock()
	defer r.record.Unlock()
	require.NoError(r.t, h.why)
	require.True(r.t, h.Alive())
	require.Equal(r.t, r.began.Add(until), h.Deadline())
}

// answer lets the calls that hang go on.
func (r *harness) answer() {
	close(r.hang)
	synctest.Wait()
}

// pass lets virtual time pass and everything happen that is due by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func renewAll(c attempt) { c.all(Renewed) }

func answerNothing(attempt) {}

// slowly answers all calls the same, after a time.
func slowly(d time.Duration, a Answer) func(attempt) {
	return func(c attempt) {
		time.Sleep(d)
		c.all(a)
	}
}

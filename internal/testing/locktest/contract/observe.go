package contract

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

var observeCases = []testCase{
	{"Observe_Call", servers, defaults, observeCall},
	{"Observe_Reentry", servers, defaults, observeReentry},
	{"Observe_HandoverAndGrant", servers | ofOneHolder, tenured, observeHandover},
	{"Observe_WokenWaiter", servers | ofOneHolder, defaults, observeWoken},
	{"Observe_Failed", servers | ofOneHolder, defaults, observeFailed},
	{"Observe_GaveUp", servers, defaults, observeGaveUp},
	{"Observe_Lost", servers, defaults, observeLost},
	{"Observe_Renewed", servers, defaults, observeRenewed},
	{"Observe_Outage", servers, defaults, observeOutage},
	{"Observe_OutageOfAHolder", servers, defaults, observeOutageHeld},
	{"Observe_Close", servers | ofOneHolder, defaults, observeClose},
	{"Observe_Panic", servers, defaults, observePanic},
	{"Observe_Blocked", servers | ofOneHolder, defaults, observeBlocked},
	{"Observe_LocksItself", servers | ofOneHolder, defaults, observeLocks},
	{"Observe_Balance", servers, unsteady, observeBalance},
}

// seen are the events that an observer was told.
type seen struct {
	mu  sync.Mutex
	all []any // guarded by mu
}

func note[E any](s *seen) func(E) {
	return func(e E) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, e)
	}
}

func (s *seen) observer() *holdfast.Observer {
	return &holdfast.Observer{
		Acquired: note[holdfast.AcquiredEvent](s), Failed: note[holdfast.FailedEvent](s), Released: note[holdfast.ReleasedEvent](s),
		Lost: note[holdfast.LostEvent](s), Renewed: note[holdfast.RenewedEvent](s), Woken: note[holdfast.WokenEvent](s),
		Waiters: note[holdfast.WaitersEvent](s), OutageBegan: note[holdfast.OutageBeganEvent](s),
		OutageEnded: note[holdfast.OutageEndedEvent](s), Dropped: note[holdfast.DroppedEvent](s),
	}
}

// of are the events of a kind.
func of[E any](s *seen) (all []E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		if e, is := e.(E); is {
			all = append(all, e)
		}
	}
	return all
}

// await waits for n events of a kind, and returns them.
func await[E any](c *harness, s *seen, n int) (all []E) {
	c.T.Helper()
	locktest.Await(c.T, func() bool { all = of[E](s); return len(all) >= n }, "%T", all)
	return all
}

// observed makes c.Locker one that tells s.
func (c *harness) observed(o locktest.Options) (s *seen) {
	c.T.Helper()
	s = &seen{}
	o.Observer = s.observer()
	c.Locker = c.Kind.Open(c.T, c.Client, o)
	c.commands()
	return s
}

// told closes the locker and returns all events in short, but those of the kinds without.
func (c *harness) told(s *seen, without ...string) (all []string) {
	c.T.Helper()
	require.NoError(c.T, c.Locker.Close())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		line := ""
		switch e := e.(type) {
		case holdfast.AcquiredEvent:
			line = "acquired " + e.Key + " by " + string(e.How)
		case holdfast.ReleasedEvent:
			line = "released " + e.Key
		case holdfast.LostEvent:
			line = "lost " + e.Key
		case holdfast.FailedEvent:
			line = "failed " + e.Key
		case holdfast.WaitersEvent:
			line = fmt.Sprintf("waiters %s %d", e.Key, e.Waiting)
		default:
			line = fmt.Sprintf("%T", e)
		}
		if !slices.ContainsFunc(without, func(w string) bool { return strings.HasPrefix(line, w) }) {
			all = append(all, line)
		}
	}
	return all
}

// pause is how long a case lets a wait or a hold last, for its event to tell.
const pause = 20 * time.Millisecond

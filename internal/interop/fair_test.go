package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mixedThreads is how many of each language wait in one queue.
const mixedThreads = 8

// line is the waiters of a fair lock, in the order in which they entered.
type line struct {
	t     testing.TB
	s     redis
	ahead int // others in the queue before them
	hands []hand
	waits []<-chan answer
}

// enter puts a thread at the end.
func (l *line) enter(h hand) {
	l.t.Helper()
	l.entering(h, h.waits())
}

// entering is enter for a wait that has begun.
func (l *line) entering(h hand, wait <-chan answer) {
	l.t.Helper()
	l.hands, l.waits = append(l.hands, h), append(l.waits, wait)
	awaitWaiters(l.t, l.s, "fair", h.key, int64(l.ahead+len(l.hands)))
}

// served requires that all get the lock in their order, and gives it back for each.
func (l *line) served() {
	l.t.Helper()
	for i, h := range l.hands {
		got(l.t, l.waits[i])
		for j := i + 1; j < len(l.waits); j++ {
			require.Empty(l.t, l.waits[j], "%s %s before %s %s", l.hands[j].lang, l.hands[j].thread, h.lang, h.thread)
		}
		h.unlock()
	}
}

// fairHands are n threads at one fair lock.
func fairHands(t testing.TB, a *agent, key string, n int) (all []hand) {
	for i := range n {
		all = append(all, a.hand(t, fmt.Sprintf("%s-%d", key, i), "fair", key))
	}
	return all
}

// Eight and eight in one queue are served in the order in which they came.
func TestFair_Mixed(t *testing.T) {
	s, agents := start(t, longLeases, twoAgents...)
	testMixed(t, s, agents)
}

func testMixed(t *testing.T, s redis, agents []*agent) {
	for _, lang := range []int{0, 1} {
		for range 3 {
			key := fmt.Sprintf("%s-%d", t.Name(), rand.Uint64())
			holder := agents[lang].hand(t, key+" holder", "fair", key)
			holder.lock()
			all := append(fairHands(t, agents[0], key, mixedThreads), fairHands(t, agents[1], key, mixedThreads)...)
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			queue := line{t: t, s: s}
			for _, h := range all {
				queue.enter(h)
			}
			holder.unlock()
			queue.served()
			tidy(t, s, key)
		}
	}
}

// Eight and eight that come again and again: the order is kept, no waiter loses a place
// and none starves, by all that Redis does.
func TestFair_Cycles(t *testing.T) { onServerAndCluster(t, testCycles) }

func testCycles(t *testing.T, s redis) {
	none := time.Duration(0)
	agents := startOn(t, s, options{Handover: &none}, inGo, inJava, inGo, inJava)
	o := newOrder("k")
	seen := s.of(t, "k").Monitor(t, o.see)
	file := filepath.Join(t.TempDir(), "records")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var working []<-chan answer
	for i, a := range agents {
		for thread := range mixedThreads / 2 {
			working = append(working, a.send(command{
				Op: "work", Thread: fmt.Sprint(thread), Kind: "fair", Keys: []string{"k"},
				File: file, Name: fmt.Sprintf("%s%d.1", a.lang, i),
			}))
		}
	}
	for i, a := range agents { // until each has had many turns
		grants := fmt.Sprintf("G %s%d.1-", a.lang, i)
		await(t, func() bool {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			return strings.Count(string(data), grants) > 60
		})
	}
	for _, a := range agents {
		a.do(t, command{Op: "stop"})
	}
	for i, a := range working {
		said := answerOf(t, a)
		require.Empty(t, said.Error)
		require.Positive(t, said.Number, "thread %d starved", i)
	}
	seen()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	run := readRecords(t, string(data), nil)
	require.Empty(t, run.overlaps(), "two holders")
	require.Empty(t, run.crossed, "two holders")
	require.Empty(t, run.lost)
	require.Empty(t, o.wrong[:min(3, len(o.wrong))])
	require.Len(t, o.granted, len(agents))
	most, least := 0, len(run.holds)
	for _, n := range o.granted {
		most, least = max(most, n), min(least, n)
	}
	t.Logf("%d grants, from %d to %d for each process; %d in Java were late", len(run.holds), least, most, o.late)
	require.Less(t, most, 5*least)
	require.LessOrEqual(t, o.late, len(run.holds)/20)
	tidy(t, s, "k")
}

// A waiter that gives up in the middle of the queue takes no turn from another.
func TestFair_TimeOuts(t *testing.T) {
	s, agents := start(t, longLeases, twoAgents...)
	for i, holder := range agents {
		key := fmt.Sprintf("%s-%d", t.Name(), i)
		first := holder.hand(t, key+" holder", "fair", key)
		first.lock()
		here, there := fairHands(t, agents[0], key, 4), fairHands(t, agents[1], key, 4)
		all := line{t: t, s: s}
		var short []<-chan answer
		for j := range here {
			for _, h := range []hand{here[j], there[j]} {
				wait := h.waits
				if j == 1 || j == 2 {
					wait = func() <-chan answer { return h.triesFor(3 * time.Second) }
				}
				all.entering(h, wait())
			}
		}
		short = all.waits[2:6]
		for _, wait := range short {
			notGot(t, wait)
		}
		awaitWaiters(t, s, "fair", key, 4)
		first.unlock()
		left := line{t: t, s: s, hands: append(all.hands[:2:2], all.hands[6:]...), waits: append(all.waits[:2:2], all.waits[6:]...)}
		left.served()
		tidy(t, s, key)
	}
}

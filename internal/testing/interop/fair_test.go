package interop

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
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
	o := newOrder("fair")
	seen := s.of(t, "fair").Monitor(t, o.see)
	file := filepath.Join(t.TempDir(), "records")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var working []<-chan answer
	for i, a := range agents {
		for thread := range mixedThreads / 2 {
			working = append(working, a.send(command{
				Op: "work", Thread: fmt.Sprint(thread), Kind: "fair", Keys: []string{"fair"},
				File: file, Name: fmt.Sprintf("%s%d.1", a.lang, i),
			}))
		}
	}
	for i, a := range agents { // until each has had many turns
		grants := fmt.Sprintf("G %s%d.1-", a.lang, i)
		locktest.Await(t, func() bool {
			return strings.Count(string(locktest.Must(os.ReadFile(file))(t)), grants) > 60
		})
	}
	for _, a := range agents {
		a.do(t, command{Op: "stop"})
	}
	for i, a := range working {
		reply := answerOf(t, a)
		require.Empty(t, reply.Error)
		require.True(t, reply.OK, "a lock was lost")
		require.Positive(t, reply.Number, "thread %d starved", i)
	}
	seen()
	n := len(grants.FindAll(readRecords(t, file, nil), -1))
	require.Empty(t, o.wrong[:min(3, len(o.wrong))])
	require.Len(t, o.granted, len(agents))
	granted := slices.Collect(maps.Values(o.granted))
	t.Logf("%d grants, %v by process; %d in Java were late", n, granted, o.late)
	require.Less(t, slices.Max(granted), 5*slices.Min(granted))
	require.LessOrEqual(t, o.late, n/4)
	tidy(t, s, "fair")
}

// A waiter that gives up in the middle of the queue takes no turn from another.
func TestFair_TimeOuts(t *testing.T) {
	t.Parallel()
	s, agents := start(t, longLeases, twoAgents...)
	for i, holder := range agents {
		key := fmt.Sprintf("%s-%d", t.Name(), i)
		first := holder.hand(t, key+" holder", "fair", key)
		first.lock()
		here, there := fairHands(t, agents[0], key, 4), fairHands(t, agents[1], key, 4)
		all, left := line{t: t, s: s}, line{t: t, s: s}
		var short []<-chan answer
		for j := range 8 {
			h := []hand{here[j/2], there[j/2]}[j%2]
			if j >= 2 && j < 6 {
				short = append(short, h.triesFor(15*time.Second))
				all.entering(h, short[len(short)-1])
				continue
			}
			all.enter(h)
			left.hands, left.waits = append(left.hands, h), append(left.waits, all.waits[j])
		}
		for _, wait := range short {
			notGot(t, wait)
		}
		awaitWaiters(t, s, "fair", key, 4)
		first.unlock()
		left.served()
		tidy(t, s, key)
	}
}

// Clocks may differ: the server's may be ahead of Java's by any time, and behind it
// by less than the 20 s by which the scores lie ahead of it at least.
func TestFair_ClocksDiffer(t *testing.T) {
	t.Parallel()
	needJava(t)
	for name, ahead := range map[string]time.Duration{"Ahead": 20 * time.Second, "Behind": -15 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.StartWithClock(t)
			server.SetClock(ahead, 1)
			s := one(server)
			agents := startOn(t, s, longLeases, twoAgents...)
			for i, a := range agents {
				key := "k" + strconv.Itoa(i)
				holder := a.hand(t, key+" holder", "fair", key)
				holder.lock()
				queue := line{t: t, s: s}
				here, there := fairHands(t, agents[0], key, 4), fairHands(t, agents[1], key, 4)
				for j := range here {
					queue.enter(here[j])
					queue.enter(there[j])
				}
				holder.unlock()
				queue.served()
				tidy(t, s, key)
			}
		})
	}
}

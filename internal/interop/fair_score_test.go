package interop

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// score is how far the score of an owner lies ahead of the server's clock: when it
// has passed, Java takes the owner for dead.
func score(t testing.TB, s redis, key, owner string) time.Duration {
	t.Helper()
	m := s.of(t, key).Do(t, "ZSCORE", scoresOf(key), owner)
	at, err := m.AsFloat64()
	require.NoError(t, err)
	return time.Duration(at*1e6) - time.Duration(serverTime(t, s.of(t, key)).UnixNano())
}

func serverTime(t testing.TB, s *redistest.Server) time.Time {
	t.Helper()
	m := s.Do(t, "TIME")
	parts, err := m.AsStrSlice()
	require.NoError(t, err)
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	require.NoError(t, err)
	micros, err := strconv.ParseInt(parts[1], 10, 64)
	require.NoError(t, err)
	return time.Unix(seconds, micros*1000)
}

// Java means to wait for 5 minutes after those before it are done. Go stands 5 minutes
// ahead for each that Java may subtract, so that no waiter is thrown out. The holder plays
// no part.
func TestFair_Scores(t *testing.T) {
	t.Parallel()
	const slack = 10 * time.Second
	s, agents := start(t, longLeases, twoAgents...)
	for _, first := range agents {
		t.Run(first.lang+"Holds", func(t *testing.T) {
			t.Parallel()
			key := t.Name()
			holder := first.hand(t, key+" holder", "fair", key)
			holder.lock()
			queue := line{t: t, s: s}
			enter := func(a *agent, thread string) time.Duration {
				queue.enter(a.hand(t, key+" "+thread, "fair", key))
				return score(t, s, key, tail(t, s, key))
			}
			require.InDelta(t, 30*time.Second, enter(agents[0], "1"), float64(slack), "Go, behind nobody")
			firstGo := tail(t, s, key)
			require.InDelta(t, 330*time.Second, enter(agents[1], "2"), float64(slack), "Java, behind Go")
			require.InDelta(t, 630*time.Second, enter(agents[1], "3"), float64(slack), "Java, behind Java")
			behind := enter(agents[0], "4")
			require.InDelta(t, 1200*time.Second, behind, float64(slack), "Go, behind three: four times 5 minutes")
			lastGo := tail(t, s, key)
			require.InDelta(t, behind+300*time.Second, enter(agents[1], "5"), float64(slack), "Java, behind that")

			// The scores of live waiters move on with the server's clock, every 10 s.
			for owner, distance := range map[string]time.Duration{firstGo: 30 * time.Second, lastGo: 1200 * time.Second} {
				await(t, func() bool { return score(t, s, key, owner) < distance-slack/2 })
				await(t, func() bool { return score(t, s, key, owner) > distance-slack/5 })
			}
			holder.unlock()
			queue.served()
			tidy(t, s, key)
		})
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

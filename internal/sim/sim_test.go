package sim_test

import (
	"bufio"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Nothing that users import links the simulation; suites and tests alone do.
func TestOnlyTestsImportIt(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}:{{range .Imports}} {{.}}{{end}}`, "github.com/holdfast-go/holdfast/...").Output()
	require.NoError(t, err)
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		by, all, _ := strings.Cut(lines.Text(), ":")
		if strings.Contains(all+" ", "/internal/sim ") {
			require.Contains(t, by, "/internal/locktest")
		}
	}
}

// world is one server, with a link to it, in a bubble.
type world struct {
	t      *testing.T
	server *sim.Server
	link   *redistest.Proxy
	locker *rlock.Locker
	other  *rlock.Locker // without a link
}

func inWorld(t *testing.T, run func(t *testing.T, w world)) {
	synctest.Test(t, func(t *testing.T) {
		var n sim.Network
		w := world{t: t, server: sim.Start(t, &n)}
		w.link = redistest.NewProxyOn(t, &n, w.server.Addr())
		open := func(c rueidis.Client) *rlock.Locker {
			l, err := rlock.New(c)
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
			return l
		}
		w.locker = open(w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{w.link.Addr()} }))
		w.other = open(w.server.Client(t))
		run(t, w)
	})
}

func (w world) lock(l holdfast.Locker) *holdfast.Lease {
	w.t.Helper()
	e, err := l.Lock(w.t.Context(), "k")
	require.NoError(w.t, err)
	return e
}

// took says how long f takes.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func TestLinkDelays(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		e := w.lock(w.locker)
		require.NoError(t, e.Unlock(t.Context())) // Redis knows the scripts now
		w.link.SetDelay(3*time.Millisecond, 4*time.Millisecond)
		require.Equal(t, 7*time.Millisecond, took(func() { e = w.lock(w.locker) }))
		w.link.SetJitter(func() time.Duration { return time.Millisecond })
		require.Equal(t, 9*time.Millisecond, took(func() { require.NoError(t, e.Unlock(t.Context())) }))
	})
}

func TestLinkHoldsRequestsAndReplies(t *testing.T) {
	for _, hold := range []func(p *redistest.Proxy, on bool){(*redistest.Proxy).HoldRequests, (*redistest.Proxy).HoldReplies} {
		inWorld(t, func(t *testing.T, w world) {
			e := w.lock(w.locker)
			hold(w.link, true)
			require.Less(t, took(func() { <-e.Done() }), holdfast.DefaultLease)
			hold(w.link, false)
			require.ErrorIs(t, e.Unlock(t.Context()), holdfast.ErrLost)
			w.lock(w.other)
		})
	}
}

// The server has carried out what it answers when the link is cut.
func TestLinkIsCutBetweenExecutionAndReply(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		swallowed := w.link.SwallowReply(1, func(cmd []string) bool {
			return strings.EqualFold(cmd[0], "EVALSHA") || strings.EqualFold(cmd[0], "EVAL")
		})
		_, err := w.locker.TryLock(t.Context(), "k")
		require.ErrorIs(t, err, holdfast.ErrUnknown)
		<-swallowed
		w.lock(w.other) // it is undone
	})
}

func TestLinkRefuses(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		w.link.Refuse(true)
		w.link.Cut()
		_, err := w.locker.TryLock(t.Context(), "k")
		require.Error(t, err)
		_, err = w.locker.TryLock(t.Context(), "k")
		require.ErrorIs(t, err, holdfast.ErrUnavailable)
		w.link.Refuse(false)
		w.lock(w.locker)
	})
}

func TestServerForgets(t *testing.T) {
	for name, forget := range map[string]func(*sim.Server){"flush": (*sim.Server).Forget, "restart": (*sim.Server).Restart} {
		inWorld(t, func(t *testing.T, w world) {
			e := w.lock(w.locker)
			forget(w.server)
			w.lock(w.other)
			<-e.Done()
			require.ErrorIs(t, e.Err(), holdfast.ErrLost, name)
		})
	}
}

func TestServerRestartsWithMemory(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		e := w.lock(w.locker)
		w.server.RestartWithMemory()
		time.Sleep(time.Hour)
		require.NoError(t, e.Unlock(t.Context()))
	})
}

func TestServerPauses(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		e := w.lock(w.locker)
		w.server.Pause()
		require.Less(t, took(func() { <-e.Done() }), holdfast.DefaultLease)
		w.server.Resume()
		w.lock(w.other)
	})
}

func TestServerRefuses(t *testing.T) {
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "NOSCRIPT No matching script. Please use EVAL.",
	} {
		inWorld(t, func(t *testing.T, w world) {
			w.server.Refuse(text)
			_, err := w.locker.TryLock(t.Context(), "k")
			require.ErrorIs(t, err, holdfast.ErrUnavailable, text)
			w.server.Refuse("")
			w.lock(w.locker)
		})
	}
}

func TestServerIsOutOfMemory(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		e := w.lock(w.locker)
		w.server.OutOfMemory(true)
		require.NoError(t, e.Unlock(t.Context()), "this needs none")
		_, err := w.locker.TryLock(t.Context(), "k")
		require.ErrorIs(t, err, holdfast.ErrUnavailable)
		require.ErrorContains(t, err, "OOM command not allowed")
		w.server.OutOfMemory(false)
		w.lock(w.locker)
	})
}

func TestServerForgetsScripts(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		e := w.lock(w.locker)
		w.server.ForgetScripts()
		require.NoError(t, e.Unlock(t.Context()))
	})
}

func TestServerClockJumps(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		e := w.lock(w.locker)
		w.server.JumpClock(holdfast.DefaultLease)
		w.lock(w.other)
		require.NoError(t, e.Err(), "nobody has told yet")
		<-e.Done()
	})
}

// A seed repeats its faults and all other choices.
func TestScheduleIsThatOfItsSeed(t *testing.T) {
	all := func(seed uint64) []sim.Fault {
		return sim.Schedule(seed, 3, 5, time.Hour, time.Second, time.Minute, sim.OfLinks)
	}
	require.Equal(t, all(1), all(1))
	require.NotEqual(t, all(1), all(2))
	seen := map[sim.Mishap]int{}
	for _, f := range all(1) {
		seen[f.What]++
	}
	require.Len(t, seen, len(sim.OfLinks))
	require.InDelta(t, 3600, len(all(1)), 200)
	require.Equal(t, sim.Random(1, "a").Uint64(), sim.Random(1, "a").Uint64())
	require.NotEqual(t, sim.Random(1, "a").Uint64(), sim.Random(1, "b").Uint64())
}

// All mishaps end, and leave links and servers as they were.
func TestWorldIsWellAfterItsFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(t, 1, 2, 1)
		l, err := rlock.New(w.Clients(0)[0])
		require.NoError(t, err)
		defer l.Close()
		all := slices.Concat(sim.OfLinks, sim.OfServers, []sim.Mishap{sim.LoseMemory, sim.ClockJump})
		told := 0
		w.Play(sim.Schedule(1, 2, 1, time.Hour, 10*time.Second, time.Minute, all), func(sim.Fault) { told++ })
		require.Greater(t, told, 300)
		since, ok := w.Healthy(0)
		require.True(t, ok)
		require.WithinDuration(t, time.Now(), since, 5*time.Minute)
		time.Sleep(time.Second)
		require.Less(t, took(func() { require.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil })) }), 20*time.Millisecond)
	})
}

// The restart guard sees which process a server is, and when it has begun.
func TestServersHaveTheRestartGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n sim.Network
		var servers []*sim.Server
		var clients []rueidis.Client
		for range 3 {
			s := sim.Start(t, &n)
			servers, clients = append(servers, s), append(clients, s.Client(t))
		}
		l, err := multilock.New(clients)
		require.NoError(t, err)
		defer l.Close()
		_, err = l.TryLock(t.Context(), "k")
		require.ErrorIs(t, err, holdfast.ErrUnavailable, "the nodes are new")
		require.NoError(t, l.Bootstrap(t.Context(), multilock.NothingHeld()))
		lock := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return l.Do(ctx, "k", func(context.Context) error { return nil })
		}
		require.NoError(t, lock())
		servers[0].Restart()
		require.NoError(t, lock(), "two of three are enough")
		servers[1].RestartWithMemory()
		require.ErrorIs(t, lock(), holdfast.ErrUnavailable)
		require.Less(t, took(func() {
			for errors.Is(lock(), holdfast.ErrUnavailable) {
			}
		}), 2*holdfast.DefaultLease)
	})
}

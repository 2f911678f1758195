package pubsub

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// often asks so often that a test does not have to wait.
func often(p *pace) { p.verify = 20 * time.Millisecond }

// unasked has it ask nothing, nor drop its own channel.
func unasked(p *pace) { p.verify = time.Hour }

// While somebody listens, one question is asked in a pace; with nobody, none, and nothing is left on the server.
func TestF36_IdleSubscriberAsksNothing(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv.Client(t), withPace(often))
	subs := []*Subscription{s.Subscribe("a")}
	awaitLive(t, subs...)
	subs = append(subs, s.Subscribe("b"), s.Subscribe("b"))
	awaitLive(t, subs...)
	asked := func() int { return calls(t, srv, "pubsub|numsub") }
	began := time.Now()
	require.Eventually(t, func() bool { return asked() >= 10 }, patience, time.Millisecond)
	require.GreaterOrEqual(t, time.Since(began), 9*20*time.Millisecond)
	require.Equal(t, 2, calls(t, srv, "subscribe"), "its own channel and a together, and b")
	for _, sub := range subs {
		sub.Close()
	}
	require.Eventually(t, func() bool { return known(s) == 0 }, patience, time.Millisecond)
	before := asked()
	time.Sleep(5 * 20 * time.Millisecond) // no event tells
	require.Equal(t, before, asked())
	left := srv.Do(t, "PUBSUB", "CHANNELS")
	channels, err := left.AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, channels)
}

// Its name begins like that of a channel that the user may not hear. Then another one serves.
func TestF36_OwnChannelRefusedWithTheFirst(t *testing.T) {
	srv := redistest.Start(t)
	limited(t, srv, "+pubsub")
	log, logged := withLog()
	s := open(t, srv.Client(t, asUser), withPace(often), logged)
	s.Subscribe("bad")
	require.Eventually(t, func() bool { return log.Count("channels refused") == 1 }, patience, time.Millisecond)
	awaitLive(t, s.Subscribe("ok:1"))
	require.Eventually(t, func() bool { return calls(t, srv, "pubsub|numsub") >= 1 }, patience, time.Millisecond)
	require.Zero(t, log.Count("cannot ask"))
}

// A user whose channels are allowed one by one hears all the same, and the log says so.
func TestF36_OwnChannelRefused(t *testing.T) {
	srv := redistest.Start(t)
	limited(t, srv, "resetchannels", "&ok:1", "+pubsub")
	log, logged := withLog()
	s := open(t, srv.Client(t, asUser), withPace(unasked), logged)
	sub := s.Subscribe("ok:1")
	awaitLive(t, sub)
	require.Eventually(t, func() bool { return log.Count("cannot ask") == 1 }, patience, time.Millisecond)
	srv.Do(t, "PUBLISH", "ok:1", "0")
	await(t, sub, "told", func(st State) bool { return st.Live && st.Epoch == 1 && st.Messages == 1 })
	require.Zero(t, calls(t, srv, "pubsub|numsub"))
}

// The connection has come back at another server, and the calls have not. Listeners are not live there before the calls
// follow, and then look again.
func TestF36_NotLiveWhereCallsAreNot(t *testing.T) {
	bothProtocols(t, func(t *testing.T, old *redistest.Server, speak func(*rueidis.ClientOption)) {
		next := redistest.Start(t)
		name := redistest.NewName(old)
		s := open(t, old.Client(t, speak, name.Dialled), withPace(often))
		sub := s.Subscribe("ch")
		awaitLive(t, sub)

		name.Move(next)
		old.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
		require.Eventually(t, func() bool { return numsubByAdmin(t, next, "ch") == 1 }, patience, time.Millisecond)
		for asked := calls(t, old, "pubsub|numsub"); calls(t, old, "pubsub|numsub") < asked+5; {
			require.Equal(t, State{Epoch: 1}, sub.State())
		}
		old.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		await(t, sub, "live again", func(st State) bool { return st.Live && st.Epoch == 2 })
	})
}

// The first question of a connection waits for no pause, and is repeated soon if it has no answer.
func TestF36_FirstQuestionIsAskedAtOnce(t *testing.T) {
	srv := redistest.Start(t)
	proxy := srv.Proxy(t)
	s := open(t, srv.Client(t, behind(proxy)), withPace(unasked))
	sub := s.Subscribe("ch")
	awaitLive(t, sub)
	proxy.Cut() // the connection of calls as well
	again(t, sub, 1)
}

// A refusal does not end the questions: it may pass. Then a deaf connection, of a proxy that has gone on with it at another
// server, is replaced.
func TestF36_RefusalPasses(t *testing.T) {
	for _, words := range []string{
		"ERR max number of clients reached", "WRONGPASS invalid username-password pair or user is disabled.", "upstream failure",
		"NOPERM User u has no permissions to run the 'pubsub|numsub' command", "ERR unknown command 'PUBSUB', with args beginning with: 'NUMSUB'",
	} {
		t.Run(words, func(t *testing.T) {
			old, next := redistest.Start(t), redistest.Start(t)
			proxy := old.Proxy(t)
			log, logged := withLog()
			s := open(t, old.Client(t, behind(proxy)), logged,
				withPace(func(p *pace) { p.verify, p.deaf = 20*time.Millisecond, 50*time.Millisecond }))
			sub := s.Subscribe("ch")
			awaitLive(t, sub)
			var asked atomic.Int32
			proxy.OwnWords(words, true, func(cmd []string) bool { return strings.EqualFold(cmd[0], "PUBSUB") && asked.Add(1) <= 2 })
			require.Eventually(t, func() bool { return asked.Load() >= 3 }, patience, time.Millisecond)
			require.LessOrEqual(t, log.Count("cannot ask"), 1)
			proxy.Swap(next.Addr())
			again(t, sub, 1)
		})
	}
}

// A user that may not ask, or behind a proxy that never passes the question on, hears all the same, and the log says it once.
func TestF36_QuestionDeclined(t *testing.T) {
	for _, words := range []string{"NOPERM User u has no permissions to run the 'pubsub|numsub' command", "ERR unsupported command"} {
		t.Run(words, func(t *testing.T) {
			srv := redistest.Start(t)
			proxy := srv.Proxy(t)
			var asked atomic.Int32
			proxy.OwnWords(words, true, func(cmd []string) bool { return strings.EqualFold(cmd[0], "PUBSUB") && asked.Add(1) > 0 })
			log, logged := withLog()
			s := open(t, srv.Client(t, behind(proxy)), logged, withPace(often))
			sub := s.Subscribe("ch")
			for epoch := range uint64(2) {
				again(t, sub, epoch)
				srv.Do(t, "PUBLISH", "ch", "0")
				await(t, sub, "told", func(st State) bool { return st.Live && st.Epoch == epoch+1 && st.Messages == epoch+1 })
				before := asked.Load()
				srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
				require.Eventually(t, func() bool { return asked.Load() > before }, patience, time.Millisecond)
			}
			require.Equal(t, 1, log.Count("cannot ask"))
		})
	}
}

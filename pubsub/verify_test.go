package pubsub

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
)

// often asks so often that a test does not have to wait.
func often(p *pace) { p.verify = 20 * time.Millisecond }

// unasked has it ask nothing, nor drop its own channel.
func unasked(p *pace) { p.verify = time.Hour }

// While somebody listens, one question is asked in a pace; with nobody, none, and nothing is left on the server.
func TestF36_IdleSubscriberAsksNothing(t *testing.T) {
	inBubbles(t, func(t *testing.T, v virtual) {
		subscribes := v.requests("SUBSCRIBE")
		s := v.open(t, withPace(often))
		first := s.Subscribe("a")
		awaitLive(t, first)
		second, third := s.Subscribe("b"), s.Subscribe("b")
		awaitLive(t, second, third)
		require.EqualValues(t, 2, subscribes.Load(), "its own channel and a together, and b")
		questions := v.requests("NUMSUB")
		time.Sleep(10*20*time.Millisecond + time.Millisecond)
		require.EqualValues(t, 10, questions.Load())
		for _, sub := range []*Subscription{first, second, third} {
			sub.Close()
		}
		locktest.Await(t, func() bool { return known(s) == 0 })
		before := questions.Load()
		time.Sleep(10 * 20 * time.Millisecond)
		require.Equal(t, before, questions.Load())
		require.Empty(t, locktest.Strings(t, v, "PUBSUB", "CHANNELS"))
	})
}

// Its name begins like that of a channel that the user may not hear. Then another one serves.
func TestF36_OwnChannelRefusedWithTheFirst(t *testing.T) {
	srv := startLimited(t, "+pubsub")
	s, log := openLogged(t, srv.Client(t, asUser), withPace(often))
	s.Subscribe("bad")
	locktest.Await(t, func() bool { return log.Count("channels refused") == 1 })
	awaitLive(t, s.Subscribe("ok:1"))
	locktest.Await(t, func() bool { return calls(t, srv, "pubsub|numsub") >= 1 })
	require.Zero(t, log.Count("cannot ask"))
}

// A user whose channels are allowed one by one hears all the same, and the log says so.
func TestF36_OwnChannelRefused(t *testing.T) {
	srv := startLimited(t, "resetchannels", "&ok:1", "+pubsub")
	s, log := openLogged(t, srv.Client(t, asUser), withPace(unasked), patient)
	sub := s.Subscribe("ok:1")
	awaitLive(t, sub)
	locktest.Await(t, func() bool { return log.Count("cannot ask") == 1 })
	srv.Do(t, "PUBLISH", "ok:1", "0")
	await(t, sub, "told", func(st State) bool { return st.Live && st.Epoch == 1 && st.Messages == 1 })
	require.Zero(t, calls(t, srv, "pubsub|numsub"))
}

// The connection has come back at another server, and the calls have not. Listeners are not live there before the calls
// follow, and then look again.
func TestF36_NotLiveWhereCallsAreNot(t *testing.T) {
	bothProtocols(t, func(t *testing.T, old *redistest.Server, speak func(*rueidis.ClientOption)) {
		next := redistest.Start(t)
		name := redistest.NewName(old.Addr())
		s := open(t, old.Client(t, speak, name.Dialled), withPace(often))
		sub := s.Subscribe("ch")
		awaitLive(t, sub)

		name.Move(next.Addr())
		old.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
		locktest.Await(t, func() bool { return locktest.Listeners(t, next, "ch") == 1 })
		for asked := calls(t, old, "pubsub|numsub"); calls(t, old, "pubsub|numsub") < asked+5; {
			require.Equal(t, State{Epoch: 1}, sub.State())
		}
		old.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		await(t, sub, "live again", func(st State) bool { return st.Live && st.Epoch == 2 })
	})
}

// The first question of a connection waits for no pause, and is repeated soon if it has no answer.
func TestF36_FirstQuestionIsAskedAtOnce(t *testing.T) {
	inBubbles(t, func(t *testing.T, v virtual) {
		sub := v.open(t, withPace(unasked)).Subscribe("ch")
		awaitLive(t, sub)
		v.proxy.Cut() // the connection of calls as well
		again(t, sub, 1)
	})
}

// A refusal does not end the questions: it may pass. Then a deaf connection, of a proxy that has gone on with it at another
// server, is replaced.
func TestF36_RefusalPasses(t *testing.T) {
	for _, words := range []string{
		"ERR max number of clients reached", "WRONGPASS invalid username-password pair or user is disabled.", "upstream failure",
		"NOPERM User u has no permissions to run the 'pubsub|numsub' command", "ERR unknown command 'PUBSUB', with args beginning with: 'NUMSUB'",
	} {
		t.Run(words, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, v virtual) {
				s, log := openLogged(t, v.Client(t, behind(v.proxy), v.speak))
				sub := s.Subscribe("ch")
				awaitLive(t, sub)
				var asked atomic.Int32
				v.proxy.OwnWords(words, true, func(cmd []string) bool { return slices.Contains(cmd, "NUMSUB") && asked.Add(1) <= 2 })
				time.Sleep(3 * defaultPace.deaf)
				require.Greater(t, asked.Load(), int32(2))
				require.LessOrEqual(t, log.Count("cannot ask"), 1)
				v.proxy.Swap(sim.Start(t, v.net).Addr())
				again(t, sub, 1)
			})
		})
	}
}

// A user that may not ask, or behind a proxy that never passes the question on, hears all the same, and the log says it once.
func TestF36_QuestionDeclined(t *testing.T) {
	for _, words := range []string{"NOPERM User u has no permissions to run the 'pubsub|numsub' command", "ERR unsupported command"} {
		t.Run(words, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, v virtual) {
				v.proxy.OwnWords(words, true, func(cmd []string) bool { return slices.Contains(cmd, "NUMSUB") })
				questions := v.requests("NUMSUB")
				s, log := openLogged(t, v.Client(t, behind(v.proxy), v.speak))
				sub := s.Subscribe("ch")
				for epoch := range uint64(2) {
					again(t, sub, epoch)
					v.Do(t, "PUBLISH", "ch", "0")
					await(t, sub, "told", func(st State) bool { return st.Live && st.Epoch == epoch+1 && st.Messages == epoch+1 })
					before := questions.Load()
					v.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
					locktest.Await(t, func() bool { return questions.Load() > before })
				}
				require.Equal(t, 1, log.Count("cannot ask"))
			})
		})
	}
}

// unanswering is a client whose first question is answered late.
type unanswering struct {
	rueidis.Client
	questions   atomic.Int64
	cancellable atomic.Bool // for one, rueidis would from then on send all calls from a goroutine of its own
	late        chan struct{}
}

func (c *unanswering) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if cmd.Commands()[0] == "PUBSUB" {
		if ctx.Done() != nil {
			c.cancellable.Store(true)
		}
		if c.questions.Add(1) == 1 {
			<-c.late
		}
	}
	return c.Client.Do(ctx, cmd)
}

// A question without an answer, which nobody can cancel, keeps the next one waiting for no longer than another command.
func TestF36_QuestionWithoutAnswer(t *testing.T) {
	inBubbles(t, func(t *testing.T, v virtual) {
		client := &unanswering{Client: v.Client(t, v.speak), late: make(chan struct{})}
		defer close(client.late)
		began := time.Now()
		awaitLive(t, open(t, client).Subscribe("a"))
		require.Less(t, time.Since(began), 3*time.Second)
		require.False(t, client.cancellable.Load())
	})
}

package pubsub

import (
	"strconv"
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

// Calls have followed the name to another server, and the subscription has not. It does so while somebody listens.
func TestF36_DeafConnectionIsReplaced(t *testing.T) {
	for protocol, speak := range protocols {
		t.Run(protocol, func(t *testing.T) {
			old, next := redistest.Start(t), redistest.Start(t)
			name := redistest.NewName(old)
			client := old.Client(t, speak, named, name.Dialled)
			s := open(t, client, withPace(often))
			sub := s.Subscribe("ch")
			awaitLive(t, sub)

			name.Move(next)
			old.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			await(t, sub, "live again", func(st State) bool { return st.Live && numsubByAdmin(t, next, "ch") == 1 })
			require.Zero(t, numsubByAdmin(t, old, "ch"))
			require.Eventually(t, func() bool { return clients(t, old, "pubsub") == 0 }, patience, time.Millisecond)
		})
	}
}

// A proxy goes on with the connection at another server as soon as the first channel is subscribed. What is asked for was
// at the first server, too.
func TestF36_SwapAfterTheFirstSubscribe(t *testing.T) {
	for protocol, speak := range protocols {
		t.Run(protocol, func(t *testing.T) {
			old, next := redistest.Start(t), redistest.Start(t)
			proxy := redistest.NewProxy(t, old.Addr())
			s := open(t, old.Client(t, speak, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }))
			sub := s.Subscribe("ch")
			awaitLive(t, sub)
			proxy.Swap(next.Addr())
			again(t, sub, 1)
			require.EqualValues(t, 1, numsubByAdmin(t, next, "ch"))
		})
	}
}

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

// A user that may not ask hears all the same, and the log says it once.
func TestF36_MayNotAsk(t *testing.T) {
	srv := redistest.Start(t)
	srv.Do(t, "ACL", "SETUSER", "deaf", "on", "nopass", "~*", "&*", "+@all", "-pubsub|numsub")
	log, logged := withLog()
	s := open(t, srv.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "deaf", "x" }), withPace(often), logged)
	sub := s.Subscribe("ch")
	awaitLive(t, sub)
	require.Eventually(t, func() bool { return log.Count("cannot ask") == 1 }, patience, time.Millisecond)
	srv.Do(t, "PUBLISH", "ch", "0")
	await(t, sub, "told", func(st State) bool { return st.Live && st.Epoch == 1 && st.Messages == 1 })
	srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	await(t, sub, "live again", func(st State) bool { return st.Live && st.Epoch == 2 })
	require.Eventually(t, func() bool { return calls(t, srv, "pubsub|numsub") >= 2 }, patience, time.Millisecond)
	require.Equal(t, 1, log.Count("cannot ask"))
}

// Of each connection, the own channel is in the first SUBSCRIBE, and in that again if it failed.
func TestF36_OwnChannelGoesWithTheFirst(t *testing.T) {
	s := New(nil, nil)
	n := newNode(s, "") // without a loop
	s.nodes[""] = n
	for i := range batch + 1 {
		s.Subscribe(strconv.Itoa(i))
	}
	first := ""
	for range 2 {
		n.link = &link{}
		join, _ := n.next(batch)
		require.Contains(t, join[1], ownChannel)
		require.NotEqual(t, first, join[1], "the server may not know yet that the last connection is lost")
		first = join[1]
		n.move(join, joining, absent)
		join, _ = n.next(batch)
		require.Equal(t, first, join[1])
		join, _ = n.next(batch)
		for _, name := range join {
			require.NotContains(t, name, ownChannel)
		}
		n.detach()
	}
}

// It stays while another is being subscribed, which nobody would vouch for else.
func TestF36_OwnChannelStays(t *testing.T) {
	s := New(nil, nil)
	n := newNode(s, "") // without a loop
	s.nodes[""] = n
	l := &link{}
	n.link = l
	first := s.Subscribe("a")
	join, _ := n.next(batch)
	n.move(join, joining, joined)
	asked, err := n.question(l)
	require.NoError(t, err)
	require.Equal(t, join[1], asked)
	first.Close()
	second := s.Subscribe("b")
	join, leave := n.next(batch)
	require.Equal(t, [][]string{{"b"}, {"a"}}, [][]string{join, leave})
	asked, err = n.question(l)
	require.NoError(t, err)
	require.Empty(t, asked)
	n.move(join, joining, joined)
	n.move(leave, leaving, absent)
	asked, err = n.question(l)
	require.NoError(t, err)
	require.Contains(t, asked, "a"+ownChannel)
	second.Close()
	_, err = n.question(l)
	require.NoError(t, err)
	_, leave = n.next(batch)
	require.Equal(t, []string{"b"}, leave, "b could get a listener again, unasked")
	n.move(leave, leaving, absent)
	_, err = n.question(l)
	require.NoError(t, err)
	_, leave = n.next(batch)
	require.Equal(t, []string{asked}, leave)
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
	for protocol, speak := range protocols {
		t.Run(protocol, func(t *testing.T) {
			old, next := redistest.Start(t), redistest.Start(t)
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
}

// The first question of a connection waits for no pause, and is repeated soon if it has no answer.
func TestF36_FirstQuestionIsAskedAtOnce(t *testing.T) {
	srv := redistest.Start(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	s := open(t, srv.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), withPace(unasked))
	sub := s.Subscribe("ch")
	awaitLive(t, sub)
	proxy.Cut() // the connection of calls as well
	again(t, sub, 1)
}

// A refusal does not end the questions: it may pass.
func TestF36_RefusalPasses(t *testing.T) {
	for _, words := range []string{
		"ERR max number of clients reached", "WRONGPASS invalid username-password pair or user is disabled.", "upstream failure",
		"NOPERM User u has no permissions to run the 'pubsub|numsub' command", "ERR unknown command 'PUBSUB', with args beginning with: 'NUMSUB'",
	} {
		t.Run(words, func(t *testing.T) {
			old, next := redistest.Start(t), redistest.Start(t)
			proxy := redistest.NewProxy(t, old.Addr())
			log, logged := withLog()
			s := open(t, old.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), logged,
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

// A proxy that never passes the question on, and says so in words of its own, keeps no channel from being live.
func TestF36_QuestionDeclined(t *testing.T) {
	srv := redistest.Start(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	var asked atomic.Int32
	proxy.OwnWords("ERR unsupported command", true, func(cmd []string) bool {
		return strings.EqualFold(cmd[0], "PUBSUB") && asked.Add(1) > 0
	})
	log, logged := withLog()
	s := open(t, srv.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), logged, withPace(often))
	awaitLive(t, s.Subscribe("ch"))
	before := asked.Load()
	require.Eventually(t, func() bool { return asked.Load() >= before+3 }, patience, time.Millisecond)
	require.Equal(t, 1, log.Count("cannot ask"))
}

// It stays while another is still subscribed, which may get a listener again.
func TestF36_OwnChannelStaysBesideALeavingOne(t *testing.T) {
	s := New(nil, nil)
	n := newNode(s, "") // without a loop
	s.nodes[""] = n
	l := &link{hears: true}
	n.link = l
	first := s.Subscribe("a")
	join, _ := n.next(batch)
	n.move(join, joining, joined)
	first.Close()
	_, err := n.question(l)
	require.NoError(t, err)
	require.True(t, s.Subscribe("a").State().Live)
	join, leave := n.next(batch)
	require.Empty(t, append(join, leave...))
	name, err := n.question(l)
	require.NoError(t, err)
	require.NotEmpty(t, name, "nobody asks any more")
}

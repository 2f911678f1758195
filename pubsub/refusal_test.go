package pubsub

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// asUser logs in as the user that limited makes.
func asUser(o *rueidis.ClientOption) { o.Username, o.Password = "limited", "secret" }

// startLimited starts a server with such a user.
func startLimited(t *testing.T, rules ...string) *redistest.Server {
	t.Helper()
	srv := redistest.Start(t)
	limited(t, srv, rules...)
	return srv
}

// limited makes a user that may hear the channels ok:* and what else the rules say.
func limited(t *testing.T, srv *redistest.Server, rules ...string) {
	t.Helper()
	srv.Do(t, append([]string{"ACL", "SETUSER", "limited", "on", ">secret", "resetchannels", "&ok:*",
		"-@all", "+subscribe", "+unsubscribe", "+publish", "+hello", "+ping"}, rules...)...)
}

func soon(p *pace) { p.refused = 20 * time.Millisecond }

func TestF12_RefusedChannelKeepsNoOtherOut(t *testing.T) {
	bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
		limited(t, srv)
		s, log := openLogged(t, srv.Client(t, asUser, speak), withPace(soon), patient)
		first, bad, last := s.Subscribe("ok:1"), s.Subscribe("bad"), s.Subscribe("ok:2")
		awaitLive(t, first, last)
		asked := calls(t, srv, "subscribe")
		locktest.Await(t, func() bool { return calls(t, srv, "subscribe") > asked+3 }, "a refused channel is asked for again")
		require.Equal(t, State{}, bad.State())
		require.Equal(t, State{Epoch: 1, Live: true}, first.State())
		require.Equal(t, 1, log.Count("channels refused"))

		srv.Do(t, "ACL", "SETUSER", "limited", "&bad")
		awaitLive(t, bad)
		locktest.Await(t, func() bool { return log.Count("no channel is refused any more") == 1 })
		require.Zero(t, log.Count("connection lost"))
	})
}

// However often listeners of a refused channel come and go, the server is not asked before the long delay is over.
func TestF12_RefusedChannelDoesNotSpin(t *testing.T) {
	srv := startLimited(t)
	s := open(t, srv.Client(t, asUser), withPace(unasked), withPace(func(p *pace) { p.refused = time.Hour }), patient)
	const rounds = 50
	for i := range rounds {
		bad, ok := s.Subscribe("bad"), s.Subscribe(fmt.Sprint("ok:", i))
		awaitLive(t, ok) // by then the loop has seen bad too
		bad.Close()
	}
	require.LessOrEqual(t, calls(t, srv, "subscribe"), rounds+4) // three for bad and its own channel, one for another own one
}

// A user without UNSUBSCRIBE gets rid of a channel all the same, with the connection; one without PING without losing it.
func TestF32_CommandRefused(t *testing.T) {
	for right, epoch := range map[string]uint64{"-unsubscribe": 2, "-ping": 1} {
		t.Run(right, func(t *testing.T) {
			srv := startLimited(t, right)
			s := open(t, srv.Client(t, asUser), patient)
			kept, dropped := s.Subscribe("ok:1"), s.Subscribe("ok:2")
			awaitLive(t, kept, dropped)
			dropped.Close()
			locktest.Await(t, func() bool { return locktest.Listeners(t, srv, "ok:2") == 0 })
			again(t, kept, epoch-1)
			require.Equal(t, epoch, kept.State().Epoch)
		})
	}
}

// A wrong password is told once and not tried at the pace of a lost connection. One that was right is being changed: the new
// one is soon found.
func TestF39_WrongPassword(t *testing.T) {
	for name, c := range map[string]struct {
		served  bool // before it was changed
		refused time.Duration
		least   time.Duration // for three tries
		says    string
	}{
		"always":  {served: false, refused: 200 * time.Millisecond, least: 150 * time.Millisecond, says: "connection refused"},
		"changed": {served: true, refused: time.Hour, says: "connection lost"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := startLimited(t)
			s, log := openLogged(t, srv.Client(t, asUser), withPace(func(p *pace) { p.refused = c.refused }))
			if c.served {
				awaitLive(t, s.Subscribe("ok:0"))
			}
			srv.Do(t, "ACL", "SETUSER", "limited", "<secret", ">other")
			srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
			sub := s.Subscribe("ok:1")
			locktest.Await(t, func() bool { return log.Count(c.says) == 1 })
			before, began := calls(t, srv, "hello"), time.Now()
			locktest.Await(t, func() bool { return calls(t, srv, "hello") >= before+3 })
			require.GreaterOrEqual(t, time.Since(began), c.least)
			require.Equal(t, 1, log.Count(c.says))
			srv.Do(t, "ACL", "SETUSER", "limited", ">secret")
			awaitLive(t, sub)
			locktest.Await(t, func() bool { return log.Count("connection restored") == 1 })
		})
	}
}

// The error of a dial looks like the answer to a command, so nobody may send one on a connection that was not made.
func TestFailedDialIsNoConnection(t *testing.T) {
	srv := startLimited(t)
	s := open(t, srv.Client(t, asUser))
	srv.Do(t, "ACL", "SETUSER", "limited", "<secret", ">other")
	l := newNode(s, "").dial()
	<-l.gone
	require.ErrorContains(t, context.Cause(l.ctx), "WRONGPASS")
	select {
	case <-l.ready:
		t.Fatal("ready")
	default:
	}
}

// A server that knows no AUTH repeats the password, which the log does not.
func TestPasswordIsNotLogged(t *testing.T) {
	srv := redistest.Start(t, "--rename-command", "HELLO", "", "--rename-command", "AUTH", "")
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{srv.Addr()}, Username: "u", Password: "canary", DisableCache: true, ForceSingleClient: true,
	})
	require.ErrorContains(t, err, "canary", "there is nothing to hide")
	defer client.Close()
	s, log := openLogged(t, client)
	s.Subscribe("ok:1")
	locktest.Await(t, func() bool { return log.Count("connection lost") == 1 })
	require.Regexp(t, "unknown command ['`]AUTH['`]", log.String()) // "`" before Redis 7
	require.NotContains(t, log.String(), "canary")
}

// A client that was closed first neither keeps the Subscriber busy nor its Close waiting.
func TestClientClosedFirst(t *testing.T) {
	srv := redistest.Start(t)
	client := srv.Client(t)
	s, log := openLogged(t, client)
	sub := s.Subscribe("a")
	awaitLive(t, sub)
	client.Close()
	srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	await(t, sub, "told of the loss", func(st State) bool { return !st.Live })
	locktest.Await(t, func() bool { return log.Count("connection refused") == 1 })
	began := time.Now()
	s.Close()
	require.Less(t, time.Since(began), prompt)
}

// The program has all dedicated connections of the client: that is told once, and neither listeners nor Close hang.
func TestF40_NoDedicatedConnection(t *testing.T) {
	srv := redistest.Start(t)
	client := srv.Client(t, func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 })
	_, giveBack := client.Dedicate()
	s, log := openLogged(t, client, withPace(func(p *pace) { p.slow = 10 * time.Millisecond }))
	sub := s.Subscribe("ok:1")
	locktest.Await(t, func() bool { return log.Count("BlockingPoolSize") == 1 })
	require.False(t, sub.State().Live)
	giveBack()
	awaitLive(t, sub)
	require.Equal(t, 1, log.Count("BlockingPoolSize"))
}

package redistest

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// named matches a command by its name.
func named(name string) func([]string) bool {
	return func(cmd []string) bool { return cmd[0] == name }
}

// on gives a verdict on one command and passes all others.
func on(name string, v Verdict) Hook {
	return func(cmd []string) Verdict {
		if cmd[0] == name {
			return v
		}
		return Pass
	}
}

func within(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(Patience):
		require.Fail(t, "did not happen")
	}
}

// eventually waits until the administrator reads the value of the key.
func eventually(t *testing.T, s *Server, key, value string) {
	t.Helper()
	require.Eventually(t, func() bool {
		m := s.Do(t, "GET", key)
		got, _ := m.ToString()
		return got == value
	}, Patience, time.Millisecond)
}

// onlyAdmin waits until the server has no other connection.
func onlyAdmin(t *testing.T, s *Server) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(text(t, s.Do(t, "INFO", "clients")), "connected_clients:1\r\n")
	}, Patience, time.Millisecond)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestProxyCutResetsOpenConnectionsOnly(t *testing.T) {
	_, p, w := through(t)
	w.send("PING")
	w.expect("+PONG\r\n")
	p.Cut()
	w.expectReset()
	w = dial(t, p.Addr())
	w.send("PING")
	w.expect("+PONG\r\n")
}

func TestProxyRefusesAndAcceptsAgain(t *testing.T) {
	_, p, w := through(t)
	w.send("PING")
	w.expect("+PONG\r\n")
	p.Refuse(true)
	p.Refuse(true)
	_, err := net.Dial("tcp", p.Addr())
	require.ErrorContains(t, err, "refused")
	w.send("PING")
	w.expect("+PONG\r\n")
	p.Refuse(false)
	p.Refuse(false)
	w = dial(t, p.Addr())
	w.send("PING")
	w.expect("+PONG\r\n")
}

func TestProxyResetsWhileTheTargetIsDown(t *testing.T) {
	s, p, w := through(t)
	w.send("PING")
	w.expect("+PONG\r\n")
	s.Kill()
	w.expectEOF()
	conn, err := net.Dial("tcp", p.Addr())
	if err == nil { // else the reset was there before Dial returned
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
	s.Restart()
	w = dial(t, p.Addr())
	w.send("PING")
	w.expect("+PONG\r\n")
}

func TestProxyHoldsRequestsAndReplies(t *testing.T) {
	s, p, w := through(t)
	p.HoldRequests(true)
	w.send("INCR n", "INCR n")
	w.expectSilence()
	m := s.Do(t, "GET", "n")
	require.True(t, m.IsNil())
	p.HoldReplies(true)
	p.HoldRequests(false)
	eventually(t, s, "n", "2")
	w.expectSilence()
	p.HoldReplies(false)
	w.expect(":1\r\n", ":2\r\n")
}

func TestF7_ProxyDeliversHeldRequestsOfAClientThatLeft(t *testing.T) {
	s, p, w := through(t)
	p.HoldRequests(true)
	w.send("SET k late")
	w.conn.Close()
	m := s.Do(t, "GET", "k")
	require.True(t, m.IsNil())
	p.HoldRequests(false)
	eventually(t, s, "k", "late")
	onlyAdmin(t, s)
}

func TestF38_ProxyAnswersInItsOwnWords(t *testing.T) {
	for instead, after := range map[bool]string{false: "2", true: "1"} {
		_, p, w := through(t)
		w.send("INCR n")
		w.expect(":1\r\n")
		p.OwnWords("upstream failure", instead, named("INCR"))
		w.send("INCR n", "GET n")
		w.expect("-upstream failure\r\n", "$1\r\n"+after+"\r\n")
		p.OwnWords("", false, nil)
		w.send("INCR n")
		w.expect(map[bool]string{false: ":3\r\n", true: ":2\r\n"}[instead])
	}
}

func TestProxyVerdictsOnRequests(t *testing.T) {
	t.Run("Hold", func(t *testing.T) {
		s, p, w := through(t)
		p.OnRequest(on("SET", Hold))
		w.send("PING", "SET k v", "GET k")
		w.expect("+PONG\r\n")
		w.expectSilence()
		other := dial(t, p.Addr())
		other.send("GET k")
		other.expect("$-1\r\n")
		p.Release()
		w.expect("+OK\r\n", "$1\r\nv\r\n")
		w.send("SET k w") // held anew
		w.expectSilence()
		eventually(t, s, "k", "v")
	})
	t.Run("Drop", func(t *testing.T) {
		s, p, w := through(t)
		p.OnRequest(on("SET", Drop))
		w.send("PING", "SET k v", "PING")
		w.expect("+PONG\r\n")
		w.expectSilence()
		m := s.Do(t, "GET", "k")
		require.True(t, m.IsNil())
	})
	t.Run("Cut", func(t *testing.T) {
		s, p, w := through(t)
		p.OnRequest(on("SET", Cut))
		w.send("INCR n", "SET k v")
		eventually(t, s, "n", "1") // what came before is forwarded
		m := s.Do(t, "GET", "k")
		require.True(t, m.IsNil())
	})
}

func TestF18_ProxyVerdictsOnReplies(t *testing.T) {
	t.Run("Hold", func(t *testing.T) {
		s, p, w := through(t)
		p.OnReply(on("SET", Hold))
		w.send("PING", "SET k v", "GET k")
		w.expect("+PONG\r\n")
		eventually(t, s, "k", "v")
		w.expectSilence()
		p.Release()
		w.expect("+OK\r\n", "$1\r\nv\r\n")
	})
	t.Run("Drop", func(t *testing.T) {
		s, p, w := through(t)
		p.OnReply(on("SET", Drop))
		w.send("PING", "SET k v", "SET k w")
		w.expect("+PONG\r\n")
		eventually(t, s, "k", "w")
		w.expectSilence()
		w.conn.Close()
		onlyAdmin(t, s)
	})
	t.Run("Cut", func(t *testing.T) {
		s, p, w := through(t)
		p.OnReply(on("SET", Cut))
		w.send("PING", "SET k v", "GET k")
		w.expect("+PONG\r\n")
		w.expectReset()
		eventually(t, s, "k", "v")
		onlyAdmin(t, s)
	})
}

func TestProxyReleaseFromAHookCounts(t *testing.T) {
	_, p, w := through(t)
	p.OnReply(func([]string) Verdict { p.Release(); return Hold })
	w.send("PING")
	w.expect("+PONG\r\n")
}

func TestF6_ProxySwallowsTheKthReply(t *testing.T) {
	s, p, w := through(t)
	third := p.SwallowReply(3, named("INCR"))
	ninth := p.SwallowReply(9, nil)
	w.send("INCR n", "PING", "INCR n", "INCR n")
	w.expect(":1\r\n", "+PONG\r\n", ":2\r\n")
	within(t, third)
	w.expectReset()
	eventually(t, s, "n", "3") // it was carried out

	w = dial(t, p.Addr())
	w.send("INCR n", "INCR n", "INCR n", "INCR n")
	w.expect(":4\r\n", ":5\r\n", ":6\r\n", ":7\r\n")
	require.False(t, closed(ninth))
	w.send("PING", "PING")
	w.expect("+PONG\r\n")
	within(t, ninth)
	w.expectReset()
}

func TestF6_ProxySwallowsAReplyOfAClient(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c := s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} })
	lost := p.SwallowReply(1, named("INCR"))
	_, err := do(t, c, "INCR", "n")
	require.Error(t, err)
	within(t, lost)
	got, err := do(t, c, "GET", "n")
	require.NoError(t, err)
	require.Equal(t, "1", text(t, got))
}

func TestProxyEndsWithTheTest(t *testing.T) {
	s := Start(t)
	var addr string
	t.Run("with bytes held and delayed", func(t *testing.T) {
		p := NewProxy(t, s.Addr())
		addr = p.Addr()
		p.HoldReplies(true)
		w := dial(t, addr)
		w.send("SET k v")
		eventually(t, s, "k", "v")
		p.SetDelay(time.Hour, 0)
		w.send("PING")
	})
	_, err := net.Dial("tcp", addr)
	require.ErrorContains(t, err, "refused")
	onlyAdmin(t, s)
}

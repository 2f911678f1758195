package redistest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// through is a bare connection through a new proxy to a new server.
func through(t *testing.T) (*Server, *Proxy, *wire) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	return s, p, dial(t, p.Addr())
}

// named matches a command by its name.
func named(name string) func([]string) bool {
	return func(cmd []string) bool { return cmd[0] == name }
}

// An open connection goes on at another server, as the same user and in the same protocol, and its
// subscription is left behind.
func TestProxySwapsTheServerBehindOpenConnections(t *testing.T) {
	s, p, w := through(t)
	next := Start(t)
	for _, one := range []*Server{s, next} {
		one.Do(t, "ACL", "SETUSER", "ann", "on", ">secret", "~*", "&*", "+@all")
	}
	w.send("HELLO 3 AUTH ann secret")
	w.next()
	w.send("SET k old", "SUBSCRIBE ch")
	w.expect("+OK\r\n", ">3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n")
	p.Swap(next.Addr())
	w.send("EXISTS k", "ACL WHOAMI")
	w.expect(":0\r\n", "$3\r\nann\r\n")
	require.Zero(t, Must(next.Do(t, "PUBLISH", "ch", "hi").AsInt64())(t))

	blocked := dial(t, p.Addr())
	blocked.send("BLPOP list 0")
	require.Eventually(t, func() bool { return strings.Contains(next.ask(t, "CLIENT", "LIST"), "cmd=blpop") }, Patience, time.Millisecond)
	p.Swap(s.Addr())
	blocked.expectReset()
	w.send("EXISTS k")
	w.expect(":1\r\n")
}

func TestProxyHooksSeeEachCommandOnceInOrder(t *testing.T) {
	_, p, w := through(t)
	asked, answered := make(chan string, 9), make(chan string, 9)
	p.OnRequest(func(cmd []string) Verdict { asked <- cmd[0]; return Pass })
	p.OnReply(func(cmd []string) Verdict { answered <- cmd[0]; return Pass })
	w.send("MULTI", "SET k v", "EXEC", "GET missing", "SUBSCRIBE", "HGETALL h")
	w.expect("+OK\r\n", "+QUEUED\r\n", "*1\r\n+OK\r\n", "$-1\r\n",
		"-ERR wrong number of arguments for 'subscribe' command\r\n", "*0\r\n")
	for _, want := range []string{"MULTI", "SET", "EXEC", "GET", "SUBSCRIBE", "HGETALL"} {
		require.Equal(t, want, <-asked)
		require.Equal(t, want, <-answered)
	}
}

func TestProxyAnswersRequestsThoughPushesComeBetween(t *testing.T) {
	for hello, c := range map[string]struct {
		push     string
		answered []string
	}{
		"HELLO 3": {">", []string{"HELLO 3", "SUBSCRIBE forbidden", "PING", "LRANGE list 0 -1"}},
		"HELLO 2": {"*", []string{"HELLO 2", "SUBSCRIBE forbidden", "PING"}},
	} {
		t.Run(hello, func(t *testing.T) {
			s, p, w := through(t)
			s.Do(t, "ACL", "SETUSER", "default", "resetchannels", "&a", "&b", "&c")
			s.Do(t, "RPUSH", "list", "message")
			answered := make(chan string, 9)
			p.OnReply(func(cmd []string) Verdict { answered <- strings.Join(cmd, " "); return Pass })
			w.send(hello)
			w.next()
			w.send("SUBSCRIBE a b", "SUBSCRIBE forbidden", "SUBSCRIBE c", "UNSUBSCRIBE c")
			for range 5 {
				w.next()
			}
			s.Do(t, "PUBLISH", "a", "hi")
			w.expect(c.push + "3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n")
			w.send("PING")
			w.next()
			if c.push == ">" {
				w.send("LRANGE list 0 -1")
				w.expect("*1\r\n$7\r\nmessage\r\n")
			}
			for _, want := range c.answered {
				require.Equal(t, want, <-answered)
			}
			require.Empty(t, answered)
		})
	}
}

func TestProxyHoldsRequestsAndReplies(t *testing.T) {
	s, p, w := through(t)
	p.HoldRequests(true)
	w.send("INCR n", "INCR n")
	w.expectSilence()
	require.True(t, s.Do(t, "GET", "n").IsNil())
	p.HoldReplies(true)
	p.HoldRequests(false)
	await(t, s, "n", "2")
	w.expectSilence()
	p.HoldReplies(false)
	w.expect(":1\r\n", ":2\r\n")
}

func TestF7_ProxyDeliversHeldRequestsOfAClientThatLeft(t *testing.T) {
	s, p, w := through(t)
	p.HoldRequests(true)
	w.send("SET k late")
	w.conn.Close()
	require.True(t, s.Do(t, "GET", "k").IsNil())
	p.HoldRequests(false)
	await(t, s, "k", "late")
	awaitAlone(t, s)
}

func TestF38_ProxyAnswersInItsOwnWords(t *testing.T) {
	for instead, carriedOut := range map[bool]string{false: "2", true: "1"} {
		_, p, w := through(t)
		w.send("INCR n")
		w.expect(":1\r\n")
		p.OwnWords("upstream failure", instead, named("INCR"))
		w.send("INCR n", "GET n")
		w.expect("-upstream failure\r\n", "$1\r\n"+carriedOut+"\r\n")
		p.OwnWords("", false, nil)
		w.send("GET n")
		w.expect("$1\r\n" + carriedOut + "\r\n")
	}
}

// A verdict on a request keeps it from the server; one on a reply, only the reply from the client.
func TestF18_ProxyVerdicts(t *testing.T) {
	for side, way := range map[string]struct {
		hook       func(*Proxy, Hook)
		carriedOut bool
	}{
		"requests": {(*Proxy).OnRequest, false},
		"replies":  {(*Proxy).OnReply, true},
	} {
		// begin sends commands of which the last, SET, gets the verdict, and requires that the server knows the
		// others, and that too if only the reply is concerned.
		begin := func(t *testing.T, v Verdict) (*Server, *Proxy, *wire) {
			s, p, w := through(t)
			way.hook(p, func(cmd []string) Verdict {
				if cmd[0] == "SET" {
					return v
				}
				return Pass
			})
			w.send("INCR n", "SET k v")
			await(t, s, "n", "1")
			if way.carriedOut {
				await(t, s, "k", "v")
			}
			return s, p, w
		}
		t.Run(side+" held", func(t *testing.T) {
			s, p, w := begin(t, Hold)
			w.send("INCR n")
			w.expect(":1\r\n")
			w.expectSilence()
			other := dial(t, p.Addr())
			other.send("EXISTS k")
			other.expect(map[bool]string{false: ":0\r\n", true: ":1\r\n"}[way.carriedOut])
			p.Release()
			w.expect("+OK\r\n", ":2\r\n")
			await(t, s, "k", "v")
			w.send("SET k w") // held anew
			w.expectSilence()
		})
		t.Run(side+" dropped", func(t *testing.T) {
			s, _, w := begin(t, Drop)
			w.expect(":1\r\n")
			w.send("INCR n")
			w.expectSilence()
			await(t, s, "n", map[bool]string{false: "1", true: "2"}[way.carriedOut])
			w.conn.Close()
			if way.carriedOut { // else the server does not hear of the end either
				awaitAlone(t, s)
			}
		})
		t.Run(side+" cut", func(t *testing.T) {
			s, _, w := begin(t, Cut)
			if way.carriedOut {
				w.expect(":1\r\n")
				w.expectReset()
			}
			awaitAlone(t, s)
			require.Equal(t, way.carriedOut, !s.Do(t, "GET", "k").IsNil())
		})
	}
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
	w.send("INCR n", "PING", "INCR n", "INCR n")
	w.expect(":1\r\n", "+PONG\r\n", ":2\r\n")
	<-third
	w.expectReset()
	await(t, s, "n", "3") // it was carried out
}

package redistest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// through is a bare connection through a new proxy to a new server.
func through(t *testing.T) (*Server, *Proxy, *wire) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	return s, p, dial(t, p.Addr())
}

func TestProxyForwardsAClient(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	for _, resp2 := range []bool{false, true} {
		c := s.Client(t, func(o *rueidis.ClientOption) {
			o.InitAddress = []string{p.Addr()}
			o.AlwaysRESP2 = resp2
		})
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 50 {
					if _, err := do(t, c, "INCR", "n"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	require.Equal(t, "1600", text(t, s.Do(t, "GET", "n")))
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
	require.Equal(t, next.Addr(), p.Target())
	w.send("EXISTS k", "ACL WHOAMI")
	w.expect(":0\r\n", "$3\r\nann\r\n")
	told := next.Do(t, "PUBLISH", "ch", "hi")
	n, err := told.AsInt64()
	require.NoError(t, err)
	require.Zero(t, n)

	blocked := dial(t, p.Addr())
	blocked.send("BLPOP list 0")
	require.Eventually(t, func() bool {
		m := next.Do(t, "CLIENT", "LIST")
		return strings.Contains(m.String(), "cmd=blpop")
	}, Patience, time.Millisecond)
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
	for name, c := range map[string]struct {
		hello, push string
		answered    []string
	}{
		"RESP3": {"HELLO 3", ">", []string{"HELLO 3", "SUBSCRIBE forbidden", "PING", "LRANGE list 0 -1"}},
		"RESP2": {"HELLO 2", "*", []string{"HELLO 2", "SUBSCRIBE forbidden", "PING"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, w := through(t)
			s.Do(t, "ACL", "SETUSER", "default", "resetchannels", "&a", "&b", "&c")
			s.Do(t, "RPUSH", "list", "message")
			answered := make(chan string, 9)
			p.OnReply(func(cmd []string) Verdict { answered <- strings.Join(cmd, " "); return Pass })
			w.send(c.hello)
			w.next()
			w.send("SUBSCRIBE a b", "SUBSCRIBE forbidden", "SUBSCRIBE c", "UNSUBSCRIBE c")
			for range 5 {
				w.next()
			}
			s.Do(t, "PUBLISH", "a", "hi")
			w.expect(c.push + "3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n")
			w.send("PING")
			w.next()
			if name == "RESP3" {
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

func TestProxyDelaysEachWayWithoutQueueing(t *testing.T) {
	const each = time.Second
	for name, d := range map[string][2]time.Duration{"requests": {each, 0}, "replies": {0, each}} {
		t.Run(name, func(t *testing.T) {
			_, p, w := through(t)
			p.SetDelay(d[0], d[1])
			start := time.Now()
			for range 40 {
				w.send("INCR n")
			}
			for i := range 40 {
				w.expect(fmt.Sprintf(":%d\r\n", i+1))
			}
			took := time.Since(start)
			require.GreaterOrEqual(t, took, each)
			require.Less(t, took, 20*each, "40 requests share the delay")
		})
	}
}

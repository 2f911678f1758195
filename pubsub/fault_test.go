package pubsub

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestF11_ConnectionCut(t *testing.T) {
	bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
		client := srv.Client(t, named, speak)
		log, logger := withLog()
		s := open(t, client, logger)
		subs := []*Subscription{s.Subscribe("a"), s.Subscribe("a"), s.Subscribe("b")}
		for round := range uint64(5) {
			awaitLive(t, subs...)
			srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
			for _, sub := range subs {
				again(t, sub, round+1)
				require.Equal(t, round+2, sub.State().Epoch)
			}
			require.EqualValues(t, 1, publish(t, client, "a"))
			await(t, subs[0], "told", func(st State) bool { return st.Messages == round+1 })
		}
		require.Equal(t, 5, log.Count("connection lost"))
		require.Equal(t, 1, clients(t, srv, "pubsub"))
	})
}

// inMemory is a server without a socket. All fields but server are guarded by mu.
type inMemory struct {
	server *miniredis.Miniredis
	mu     sync.Mutex
	away   bool
	up     bool        // a connection was taken since the last cut
	dials  []time.Time // up to that one
}

func (m *inMemory) dial(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up {
		m.dials = append(m.dials, time.Now())
	}
	if m.away {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	m.up = true
	return m.server.Dial()
}

// cut ends all connections and takes no others for a time. It returns the pauses before each dial, up to the first that
// succeeded.
func (m *inMemory) cut(away time.Duration) (pauses []time.Duration) {
	last := time.Now()
	m.mu.Lock()
	m.away, m.up, m.dials = away > 0, false, nil
	m.mu.Unlock()
	m.server.Close()
	time.Sleep(away)
	m.mu.Lock()
	m.away = false
	m.mu.Unlock()
	time.Sleep(defaultPace.long)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range m.dials {
		pauses = append(pauses, at.Sub(last))
		last = at
	}
	return pauses
}

// A connection that has stood is replaced at once, and one that has not after the back-off, so that a server that ends
// each connection is not stormed. One that takes none is asked often, as that costs it nothing: the pauses grow with its
// absence, up to a bound.
func TestF11_F35_PausesBetweenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &inMemory{server: miniredis.NewMiniRedis()} // never started
		t.Cleanup(m.server.Close)
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{"redis:6379"}, ForceSingleClient: true, DisableCache: true, DialCtxFn: m.dial,
		})
		require.NoError(t, err)
		t.Cleanup(client.Close)
		sub := open(t, client).Subscribe("a")
		awaitLive(t, sub)
		for back := defaultPace.first; back < 10*defaultPace.first; back *= 2 {
			pauses := m.cut(0)
			require.Len(t, pauses, 1)
			require.GreaterOrEqual(t, pauses[0], back/2)
			require.LessOrEqual(t, pauses[0], back)
			awaitLive(t, sub)
		}
		time.Sleep(defaultPace.stood)
		require.Equal(t, []time.Duration{0}, m.cut(0))
		awaitLive(t, sub)

		time.Sleep(defaultPace.stood)
		absence := time.Duration(0)
		for i, pause := range m.cut(time.Minute) {
			if i == 0 {
				require.Zero(t, pause)
				continue
			}
			require.GreaterOrEqual(t, pause, defaultPace.away/2)
			require.LessOrEqual(t, pause, min(defaultPace.away+absence/7, defaultPace.long))
			absence += pause
		}
		require.Greater(t, absence, time.Minute)
		awaitLive(t, sub)
	})
}

// A subscription is live when the server serves: while it loads it would take one.
func TestF28_NotLiveWhileLoading(t *testing.T) {
	srv := redistest.Start(t, "--key-load-delay", "200", "--enable-debug-command", "local",
		"--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024")
	s := open(t, srv.Client(t))
	sub := s.Subscribe("a")
	awaitLive(t, sub)
	srv.Do(t, "DEBUG", "POPULATE", "100000")
	srv.Do(t, "SAVE")
	srv.Restart() // it would load for 20 s
	late := s.Subscribe("b")
	require.Never(t, func() bool { return sub.State().Live || late.State().Live }, 300*time.Millisecond, 10*time.Millisecond)
	_, err := srv.TryDo("CONFIG", "SET", "key-load-delay", "0")
	require.NoError(t, err)
	again(t, sub, 1)
	awaitLive(t, late)
}

// A listener is told of the loss itself, not only of the new subscription. A channel that lost its last listener meanwhile
// is not subscribed again.
func TestF20_ServerRestarted(t *testing.T) {
	bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
		client := srv.Client(t, speak)
		log, logger := withLog()
		s := open(t, client, logger)
		kept, dropped := s.Subscribe("kept"), s.Subscribe("dropped")
		awaitLive(t, kept, dropped)
		for _, sub := range []*Subscription{kept, dropped} { // the confirmation may have been seen without its wake-up
			select {
			case <-sub.Wake():
			default:
			}
		}
		srv.Kill()
		for _, sub := range []*Subscription{kept, dropped} {
			<-sub.Wake()
			require.Equal(t, State{Epoch: 1}, sub.State())
		}
		dropped.Close()
		added := s.Subscribe("added")
		srv.Restart()
		again(t, kept, 1)
		awaitLive(t, added)
		require.EqualValues(t, 1, numsub(t, client, "kept"))
		require.Zero(t, numsub(t, client, "dropped"))
		require.Equal(t, 3, known(s), "and its own channel")
		require.Equal(t, 1, log.Count("connection lost"))
		require.Eventually(t, func() bool { return log.Count("connection restored") == 1 }, patience, time.Millisecond)
	})
}

// A silent connection is given up: while idle by rueidis' own ping, and by a SUBSCRIBE without an answer though rueidis
// does not ping.
func TestF15_HalfOpen(t *testing.T) {
	const never = -1
	for name, c := range map[string]struct {
		ping, answer time.Duration
		subscribes   bool
	}{
		"while idle":        {ping: 50 * time.Millisecond, answer: patience},
		"while subscribing": {ping: never, answer: 100 * time.Millisecond, subscribes: true},
	} {
		t.Run(name, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
				proxy := srv.Proxy(t)
				client := srv.Client(t, behind(proxy), speak, func(o *rueidis.ClientOption) {
					o.Dialer.KeepAlive, o.ConnWriteTimeout, o.Dialer.Timeout = c.ping, 200*time.Millisecond, 500*time.Millisecond
				})
				s := open(t, client, withPace(func(p *pace) { p.answer = c.answer }))
				subs := []*Subscription{s.Subscribe("a")}
				awaitLive(t, subs...)
				proxy.HoldReplies(true)
				if c.subscribes {
					subs = append(subs, s.Subscribe("b"))
				}
				await(t, subs[0], "told of the loss", func(st State) bool { return !st.Live })
				proxy.HoldReplies(false)
				again(t, subs[0], 1)
				awaitLive(t, subs...)
			})
		})
	}
}

func TestF15_CloseIsPromptWhenTheServerIsSilent(t *testing.T) {
	bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
		s := open(t, srv.Client(t, speak, slow))
		awaitLive(t, s.Subscribe("a"))
		srv.Pause()
		defer srv.Resume()
		s.Subscribe("b")
		began := time.Now()
		s.Close()
		require.Less(t, time.Since(began), prompt)
	})
}

func TestF15_CloseIsPromptWhileADialHangs(t *testing.T) {
	srv := redistest.Start(t)
	proxy := srv.Proxy(t)
	client := srv.Client(t, named, slow, behind(proxy))
	s := open(t, client, withPace(func(p *pace) { p.grace = 50 * time.Millisecond }))
	dialled := make(chan struct{}, 1)
	proxy.OnRequest(func([]string) redistest.Verdict {
		select {
		case dialled <- struct{}{}:
		default:
		}
		return redistest.Hold
	})
	s.Subscribe("a")
	<-dialled
	s.mu.Lock()
	l := s.nodes[""].link
	s.mu.Unlock()
	began := time.Now()
	s.Close()
	require.Less(t, time.Since(began), prompt)
	proxy.OnRequest(nil)
	proxy.Release()
	<-l.gone // the dial has ended, and what it yielded was closed
	require.Eventually(t, func() bool { return clients(t, srv, "pubsub") == 0 }, patience, time.Millisecond)
}

// A server whose disk fails, that has lost its master, or that a script blocks, refuses even PING. That ends neither live
// subscriptions nor the process: rueidis panics when it happens to an UNSUBSCRIBE, or to the PING that goes along with it.
func TestServerRefusesPing(t *testing.T) {
	for refusal, how := range map[string]struct {
		begin, end func(t *testing.T, srv *redistest.Server)
	}{
		"F27 MISCONF": {begin: func(t *testing.T, srv *redistest.Server) {
			srv.Do(t, "CONFIG", "SET", "save", "3600 1000000")
			require.NoError(t, os.Mkdir(filepath.Join(srv.Dir(), "dump.rdb"), 0o700)) // no place for a snapshot
			srv.Do(t, "BGSAVE")
		}, end: func(t *testing.T, srv *redistest.Server) { srv.Do(t, "CONFIG", "SET", "save", "") }},
		"F27 MASTERDOWN": {begin: func(t *testing.T, srv *redistest.Server) {
			redistest.NeedRedis7(t, "it answers PING without its master")
			srv.Do(t, "CONFIG", "SET", "replica-serve-stale-data", "no")
			srv.Do(t, "REPLICAOF", "127.0.0.1", "1")
		}, end: func(t *testing.T, srv *redistest.Server) { srv.Do(t, "REPLICAOF", "NO", "ONE") }},
		"F29 BUSY": {begin: func(t *testing.T, srv *redistest.Server) {
			srv.Do(t, "CONFIG", "SET", "lua-time-limit", "200") // busy-reply-threshold since Redis 7
			hung := make(chan struct{})
			go func() {
				defer close(hung)
				_, _ = srv.TryDo("EVAL", "while true do end", "0") // ends with an error by SCRIPT KILL
			}()
			t.Cleanup(func() { <-hung })
		}},
	} {
		t.Run(refusal, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
				client := srv.Client(t, speak)
				s := open(t, client)
				kept, dropped := s.Subscribe("kept"), s.Subscribe("dropped")
				awaitLive(t, kept, dropped)
				how.begin(t, srv)
				code := strings.Fields(refusal)[1]
				require.Eventually(t, func() bool {
					return hasCode(client.Do(t.Context(), client.B().Arbitrary("PING").Build()).Error(), code)
				}, patience, 10*time.Millisecond)
				dropped.Close()
				require.Never(t, func() bool { return !kept.State().Live }, 200*time.Millisecond, 10*time.Millisecond)
				added := s.Subscribe("added")
				if how.end != nil {
					awaitLive(t, added)
					how.end(t, srv)
				} else { // it serves nobody
					require.Never(t, func() bool { return !kept.State().Live || added.State().Live }, 100*time.Millisecond, 10*time.Millisecond)
					require.NoError(t, client.Do(t.Context(), client.B().ScriptKill().Build()).Error())
					awaitLive(t, added)
				}
				awaitDropped(t, client, "dropped")
				require.EqualValues(t, 1, kept.State().Epoch)
			})
		})
	}
}

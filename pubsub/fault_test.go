package pubsub

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestF11_ConnectionCut(t *testing.T) {
	bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
		client := srv.Client(t, named, speak)
		s, log := openLogged(t, client, patient)
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

// dials notes when a client dials, up to the first success after each cut.
type dials struct {
	mu sync.Mutex
	up bool        // guarded by mu
	at []time.Time // guarded by mu
}

func (d *dials) noted(o *rueidis.ClientOption) {
	dial := o.DialCtxFn
	o.DialCtxFn = func(ctx context.Context, addr string, by *net.Dialer, secure *tls.Config) (net.Conn, error) {
		c, err := dial(ctx, addr, by, secure)
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.up {
			d.at, d.up = append(d.at, time.Now()), err == nil
		}
		return c, err
	}
}

// cut ends all connections and has none accepted for a time. It returns the pauses before each dial, up to the first that
// succeeded.
func (d *dials) cut(proxy *redistest.Proxy, away time.Duration) (pauses []time.Duration) {
	last := time.Now()
	d.mu.Lock()
	d.at, d.up = nil, false
	d.mu.Unlock()
	proxy.Refuse(away > 0)
	proxy.Cut()
	time.Sleep(away)
	proxy.Refuse(false)
	time.Sleep(defaultPace.long)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.at {
		pauses = append(pauses, at.Sub(last))
		last = at
	}
	return pauses
}

// A connection that has stood is replaced at once, and one that has not after the back-off, so that a server that ends
// each connection is not stormed. One that takes none is asked often, as that costs it nothing: the pauses grow with its
// absence, up to a bound.
func TestF11_F35_PausesBetweenConnections(t *testing.T) {
	inBubbles(t, func(t *testing.T, v virtual) {
		var d dials
		sub := open(t, v.Client(t, behind(v.proxy), v.speak, d.noted)).Subscribe("a")
		awaitLive(t, sub)
		for back := time.Millisecond; back < 10*time.Millisecond; back *= 2 {
			pauses := d.cut(v.proxy, 0)
			require.Len(t, pauses, 1)
			require.GreaterOrEqual(t, pauses[0], back/2)
			require.LessOrEqual(t, pauses[0], back)
			awaitLive(t, sub)
		}
		time.Sleep(defaultPace.stood)
		require.Equal(t, []time.Duration{0}, d.cut(v.proxy, 0))
		awaitLive(t, sub)

		time.Sleep(defaultPace.stood)
		absence := time.Duration(0)
		for i, pause := range d.cut(v.proxy, time.Minute) {
			if i == 0 {
				require.Zero(t, pause)
				continue
			}
			require.GreaterOrEqual(t, pause, time.Millisecond/2)
			require.LessOrEqual(t, pause, min(time.Millisecond+absence/7, defaultPace.long))
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
	require.NoError(t, locktest.ErrOf(srv.TryDo("CONFIG", "SET", "key-load-delay", "0")))
	again(t, sub, 1)
	awaitLive(t, late)
}

// A listener is told of the loss itself, not only of the new subscription. A channel that lost its last listener meanwhile
// is not subscribed again.
func TestF20_ServerRestarted(t *testing.T) {
	bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
		client := srv.Client(t, speak)
		s, log := openLogged(t, client, patient)
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
		require.EqualValues(t, 1, locktest.Listeners(t, srv, "kept"))
		require.Zero(t, locktest.Listeners(t, srv, "dropped"))
		require.Equal(t, 3, known(s), "and its own channel")
		require.Equal(t, 1, log.Count("connection lost"))
		locktest.Await(t, func() bool { return log.Count("connection restored") == 1 })
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
		"while idle":        {ping: time.Second, answer: time.Hour},
		"while subscribing": {ping: never, answer: time.Second, subscribes: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, v virtual) {
				client := v.Client(t, behind(v.proxy), v.speak, func(o *rueidis.ClientOption) { o.Dialer.KeepAlive = c.ping })
				s := open(t, client, withPace(func(p *pace) { p.answer, p.verify = c.answer, time.Hour }))
				subs := []*Subscription{s.Subscribe("a")}
				awaitLive(t, subs...)
				v.proxy.HoldReplies(true)
				if c.subscribes {
					subs = append(subs, s.Subscribe("b"))
				}
				await(t, subs[0], "told of the loss", func(st State) bool { return !st.Live })
				v.proxy.HoldReplies(false)
				again(t, subs[0], 1)
				awaitLive(t, subs...)
			})
		})
	}
}

func TestF15_CloseIsPromptWhenTheServerIsSilent(t *testing.T) {
	inBubbles(t, func(t *testing.T, v virtual) {
		s := open(t, v.Client(t, v.speak, slow))
		awaitLive(t, s.Subscribe("a"))
		v.Pause()
		defer v.Resume()
		s.Subscribe("b")
		began := time.Now()
		s.Close()
		require.LessOrEqual(t, time.Since(began), defaultPace.grace)
	})
}

func TestF15_CloseIsPromptWhileADialHangs(t *testing.T) {
	inBubbles(t, func(t *testing.T, v virtual) {
		s := open(t, v.Client(t, v.speak, slow, behind(v.proxy)))
		v.proxy.HoldRequests(true)
		s.Subscribe("a")
		synctest.Wait()
		s.mu.Lock()
		l := s.nodes[""].link
		s.mu.Unlock()
		began := time.Now()
		s.Close()
		require.LessOrEqual(t, time.Since(began), defaultPace.grace)
		v.proxy.HoldRequests(false)
		<-l.gone // the dial has ended, and what it yielded was closed
	})
}

// A server whose disk fails, that has lost its master, or that a script blocks, refuses even PING. That ends neither live
// subscriptions nor the process: rueidis panics when it happens to an UNSUBSCRIBE, or to the PING that goes along with it.
func TestServerRefusesPing(t *testing.T) {
	for name, how := range map[string]struct {
		code       string
		begin, end func(t *testing.T, srv *redistest.Server)
	}{
		"F27 MISCONF": {code: "MISCONF", begin: func(t *testing.T, srv *redistest.Server) {
			srv.Do(t, "CONFIG", "SET", "save", "3600 1000000")
			require.NoError(t, os.Mkdir(filepath.Join(srv.Dir(), "dump.rdb"), 0o700)) // no place for a snapshot
			srv.Do(t, "BGSAVE")
		}, end: func(t *testing.T, srv *redistest.Server) { srv.Do(t, "CONFIG", "SET", "save", "") }},
		"F27 MASTERDOWN": {code: "MASTERDOWN", begin: func(t *testing.T, srv *redistest.Server) {
			redistest.NeedRedis7(t, "it answers PING without its master")
			srv.Do(t, "CONFIG", "SET", "replica-serve-stale-data", "no")
			srv.Do(t, "REPLICAOF", "127.0.0.1", "1")
		}, end: func(t *testing.T, srv *redistest.Server) { srv.Do(t, "REPLICAOF", "NO", "ONE") }},
		"F29 BUSY": {code: "BUSY", begin: func(t *testing.T, srv *redistest.Server) {
			srv.Do(t, "CONFIG", "SET", "lua-time-limit", "200") // busy-reply-threshold since Redis 7
			hung := make(chan struct{})
			go func() {
				defer close(hung)
				_, _ = srv.TryDo("EVAL", "while true do end", "0") // ends with an error by SCRIPT KILL
			}()
			t.Cleanup(func() { <-hung })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
				client := srv.Client(t, speak)
				s := open(t, client, patient)
				kept, dropped := s.Subscribe("kept"), s.Subscribe("dropped")
				awaitLive(t, kept, dropped)
				how.begin(t, srv)
				locktest.Await(t, func() bool {
					return hasCode(client.Do(t.Context(), client.B().Arbitrary("PING").Build()).Error(), how.code)
				})
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

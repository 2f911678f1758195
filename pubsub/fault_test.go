package pubsub

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// again waits until the listener has been confirmed once more than in the given epoch.
func again(t *testing.T, sub *Subscription, epoch uint64) {
	t.Helper()
	await(t, sub, "live again", func(st State) bool { return st.Live && st.Epoch > epoch })
}

func TestF11_ConnectionCut(t *testing.T) {
	for name, change := range protocols {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			client := srv.Client(t, named, change)
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
}

// A connection that has stood is replaced at once, one that has not after the back-off:
// a server that ends each connection is not stormed.
func TestF11_AtOnceIfItHadStood(t *testing.T) {
	srv := redistest.Start(t)
	never := func(p *pace) { p.first, p.most = time.Hour, time.Hour }
	s := open(t, srv.Client(t), withPace(never), withPace(func(p *pace) { p.stood = 0 }))
	sub := s.Subscribe("a")
	for round := range uint64(3) {
		again(t, sub, round)
		srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	}
	again(t, sub, 3)

	s = open(t, srv.Client(t), withPace(never))
	sub = s.Subscribe("b")
	awaitLive(t, sub)
	srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	await(t, sub, "lost", func(st State) bool { return !st.Live })
	select {
	case <-time.After(100 * time.Millisecond): // it waits, which is no event
	case <-s.ctx.Done():
	}
	require.False(t, sub.State().Live)
}

// Nor is a server stormed that is away: the try that comes at once is one.
func TestF11_AtOnceIsOnce(t *testing.T) {
	srv := redistest.Start(t)
	var dials atomic.Int64
	client := srv.Client(t, func(o *rueidis.ClientOption) {
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			dials.Add(1)
			return d.DialContext(ctx, "tcp", addr)
		}
	})
	const stood = 300 * time.Millisecond // longer than a server takes to die, that may take a connection meanwhile
	s := open(t, client, withPace(func(p *pace) {
		p.first, p.most, p.away, p.long, p.stood = time.Hour, time.Hour, time.Hour, time.Hour, stood
	}))
	sub := s.Subscribe("a")
	awaitLive(t, sub)
	time.Sleep(stood * 4 / 3) // the connection has stood for long
	before := dials.Load()
	srv.Kill()
	require.Eventually(t, func() bool { return dials.Load() > before }, patience, time.Millisecond)
	srv.Restart()
	require.Never(t, func() bool { return sub.State().Live }, 100*time.Millisecond, 5*time.Millisecond)
	require.Equal(t, before+1, dials.Load())
}

// A server that takes no connections is asked often, however long it has been away: that costs it nothing.
func TestF35_ServerAwayIsAskedOften(t *testing.T) {
	srv := redistest.Start(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	client := srv.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })
	const stood = 50 * time.Millisecond
	s := open(t, client, withPace(func(p *pace) { p.first, p.most, p.stood = time.Hour, time.Hour, stood }))
	sub := s.Subscribe("a")
	awaitLive(t, sub)
	time.Sleep(2 * stood) // the connection has stood for long
	proxy.Refuse(true)
	proxy.Cut()
	await(t, sub, "told of the loss", func(st State) bool { return !st.Live })
	time.Sleep(10 * defaultPace.long) // the server is away
	proxy.Refuse(false)
	again(t, sub, 1)
}

// Its pauses are a sixteenth of its absence, up to a bound.
func TestF35_PausesGrowWithTheAbsence(t *testing.T) {
	b := defaultPace.redial()
	for away := time.Duration(0); away < 2*time.Second; {
		pause := b.next()
		require.GreaterOrEqual(t, pause, b.last/2)
		require.LessOrEqual(t, b.last, min(b.first+away/7, b.most))
		away += pause
	}
	require.Equal(t, b.most, b.last)
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

// A listener is told of the loss itself, not only of the new subscription.
func TestF11_LossIsNotifiedBeforeTheServerIsBack(t *testing.T) {
	srv := redistest.Start(t)
	log, logger := withLog()
	s := open(t, srv.Client(t), logger)
	sub := s.Subscribe("a")
	awaitLive(t, sub)
	select { // the confirmation may have been seen without its wake-up
	case <-sub.Wake():
	default:
	}
	srv.Kill()
	select {
	case <-sub.Wake():
	case <-time.After(patience):
		require.FailNow(t, "not woken")
	}
	require.Equal(t, State{Epoch: 1}, sub.State())
	srv.Restart()
	again(t, sub, 1)
	require.Equal(t, 1, log.Count("connection lost"))
	require.Eventually(t, func() bool { return log.Count("connection restored") == 1 }, patience, time.Millisecond)
}

// A channel that lost its last listener during the outage is not subscribed again.
func TestF11_OnlyWantedChannelsComeBack(t *testing.T) {
	srv := redistest.Start(t)
	client := srv.Client(t)
	s := open(t, client)
	kept, dropped := s.Subscribe("kept"), s.Subscribe("dropped")
	awaitLive(t, kept, dropped)
	srv.Kill()
	await(t, dropped, "told of the loss", func(st State) bool { return !st.Live })
	dropped.Close()
	added := s.Subscribe("added")
	srv.Restart()
	again(t, kept, 1)
	awaitLive(t, added)
	require.Zero(t, numsub(t, client, "dropped"))
	require.Equal(t, 3, known(s), "and its own channel")
}

func TestF14_SlowSubscriberDropped(t *testing.T) {
	srv := redistest.Start(t, "--client-output-buffer-limit", "pubsub", "1kb", "1kb", "1")
	client := srv.Client(t)
	s := open(t, client)
	sub := s.Subscribe("a")
	awaitLive(t, sub)
	// One message above the limit is enough: the server drops the connection before it is written.
	big := rueidis.BinaryString(make([]byte, 1<<20))
	require.NoError(t, client.Do(t.Context(), client.B().Publish().Channel("a").Message(big).Build()).Error())
	again(t, sub, 1)
	require.Zero(t, sub.State().Messages)
	publish(t, client, "a")
	await(t, sub, "told", func(st State) bool { return st.Messages == 1 })
}

// through lets a client reach the server by the proxy, and notice a silent connection soon.
func through(proxy *redistest.Proxy) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) {
		o.InitAddress = []string{proxy.Addr()}
		o.Dialer.KeepAlive = 50 * time.Millisecond
		o.ConnWriteTimeout = 200 * time.Millisecond
		o.Dialer.Timeout = 500 * time.Millisecond
	}
}

// Without a command under way, rueidis' own ping notices that the server answers nothing.
func TestF15_HalfOpenWhileIdle(t *testing.T) {
	for name, change := range protocols {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			proxy := redistest.NewProxy(t, srv.Addr())
			s := open(t, srv.Client(t, through(proxy), change))
			sub := s.Subscribe("a")
			awaitLive(t, sub)
			proxy.HoldReplies(true)
			await(t, sub, "told of the loss", func(st State) bool { return !st.Live })
			proxy.HoldReplies(false)
			again(t, sub, 1)
		})
	}
}

// A SUBSCRIBE without an answer gives the connection up, although rueidis does not ping.
func TestF15_HalfOpenWhileSubscribing(t *testing.T) {
	for name, change := range protocols {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			proxy := redistest.NewProxy(t, srv.Addr())
			noPing := func(o *rueidis.ClientOption) { o.Dialer.KeepAlive = -1 }
			client := srv.Client(t, through(proxy), noPing, change)
			s := open(t, client, withPace(func(p *pace) { p.answer = 100 * time.Millisecond }))
			first := s.Subscribe("a")
			awaitLive(t, first)
			proxy.HoldReplies(true)
			second := s.Subscribe("b")
			await(t, first, "told of the loss", func(st State) bool { return !st.Live })
			require.Zero(t, second.State())
			proxy.HoldReplies(false)
			again(t, first, 1)
			awaitLive(t, second)
		})
	}
}

func TestF15_CloseIsPromptWhenTheServerIsSilent(t *testing.T) {
	for name, change := range protocols {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			s := open(t, srv.Client(t, change, slow))
			awaitLive(t, s.Subscribe("a"))
			srv.Pause()
			defer srv.Resume()
			s.Subscribe("b")
			began := time.Now()
			s.Close()
			require.Less(t, time.Since(began), prompt)
		})
	}
}

func TestF15_CloseIsPromptWhileADialHangs(t *testing.T) {
	srv := redistest.Start(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	client := srv.Client(t, named, slow, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })
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

// Nobody is subscribed for ever on a server that is back, whatever was lost with it.
func TestF20_ServerRestarted(t *testing.T) {
	for name, change := range protocols {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			client := srv.Client(t, change)
			s := open(t, client)
			sub := s.Subscribe("a")
			for round := range uint64(3) {
				awaitLive(t, sub)
				srv.Restart()
				again(t, sub, round+1)
				require.EqualValues(t, 1, numsub(t, client, "a"))
			}
		})
	}
}

// A server whose disk fails, or that has lost its master, refuses even PING: rueidis panics when that happens to the one
// that it sends along with an UNSUBSCRIBE.
func TestF27_ServerRefusesPing(t *testing.T) {
	for refusal, how := range map[string]struct {
		args       []string
		begin, end func(t *testing.T, srv *redistest.Server)
	}{
		"MISCONF": {begin: func(t *testing.T, srv *redistest.Server) {
			srv.Do(t, "CONFIG", "SET", "save", "3600 1000000")
			require.NoError(t, os.Mkdir(filepath.Join(srv.Dir(), "dump.rdb"), 0o700)) // no place for a snapshot
			srv.Do(t, "BGSAVE")
		}, end: func(t *testing.T, srv *redistest.Server) { srv.Do(t, "CONFIG", "SET", "save", "") }},
		"MASTERDOWN": {
			args:  []string{"--replica-serve-stale-data", "no"},
			begin: func(t *testing.T, srv *redistest.Server) { srv.Do(t, "REPLICAOF", "127.0.0.1", "1") },
			end:   func(t *testing.T, srv *redistest.Server) { srv.Do(t, "REPLICAOF", "NO", "ONE") },
		},
	} {
		t.Run(refusal, func(t *testing.T) {
			if refusal == "MASTERDOWN" {
				redistest.NeedRedis7(t, "it answers PING without its master")
			}
			srv := redistest.Start(t, how.args...)
			client := srv.Client(t)
			s := open(t, client)
			kept, dropped := s.Subscribe("kept"), s.Subscribe("dropped")
			awaitLive(t, kept, dropped)
			how.begin(t, srv)
			require.Eventually(t, func() bool {
				return hasCode(client.Do(t.Context(), client.B().Arbitrary("PING").Build()).Error(), refusal)
			}, patience, 10*time.Millisecond)
			added := s.Subscribe("added")
			awaitLive(t, added)
			dropped.Close()
			require.Never(t, func() bool { return !kept.State().Live }, 200*time.Millisecond, 10*time.Millisecond)
			how.end(t, srv)
			awaitDropped(t, client, "dropped")
			require.EqualValues(t, 1, kept.State().Epoch)
		})
	}
}

// A script that blocks the server neither ends live subscriptions nor the process: rueidis panics on an UNSUBSCRIBE that
// is answered with BUSY.
func TestF29_BusyServer(t *testing.T) {
	for name, change := range protocols {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t, "--busy-reply-threshold", "200")
			client := srv.Client(t, change)
			s := open(t, client)
			kept, dropped := s.Subscribe("kept"), s.Subscribe("dropped")
			awaitLive(t, kept, dropped)

			hung := make(chan struct{})
			go func() {
				defer close(hung)
				_, _ = srv.TryDo("EVAL", "while true do end", "0") // ends with an error by SCRIPT KILL
			}()
			busy := func() bool {
				return hasCode(client.Do(t.Context(), client.B().Arbitrary("PING").Build()).Error(), "BUSY")
			}
			require.Eventually(t, busy, patience, 10*time.Millisecond)
			dropped.Close()
			require.Never(t, func() bool { return !kept.State().Live }, 200*time.Millisecond, 10*time.Millisecond)
			added := s.Subscribe("added")
			require.Never(t, func() bool { return !kept.State().Live || added.State().Live }, 100*time.Millisecond, 10*time.Millisecond)
			require.NoError(t, client.Do(t.Context(), client.B().ScriptKill().Build()).Error())
			<-hung
			awaitLive(t, added)
			awaitDropped(t, client, "dropped")
			require.EqualValues(t, 1, kept.State().Epoch)
		})
	}
}

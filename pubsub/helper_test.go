package pubsub

import (
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftovers()...) }

const (
	patience = redistest.Patience
	prompt   = patience / 3 // for what waits for no time limit of a client that is slow, nor of a call
)

// slow has a client wait long for servers that are silent.
func slow(o *rueidis.ClientOption) { o.Dialer.Timeout, o.ConnWriteTimeout = patience, patience }

// patient has a subscriber wait long for them.
var patient = withPace(func(p *pace) { p.answer = patience })

// protocols are the options that select them.
var protocols = map[string]func(*rueidis.ClientOption){
	"RESP3": func(*rueidis.ClientOption) {},
	"RESP2": func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true },
}

// bothProtocols runs f on a real server of its own with each protocol, which speak has a client use.
func bothProtocols(t *testing.T, f func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption))) {
	for name, speak := range protocols {
		t.Run(name, func(t *testing.T) { f(t, redistest.Start(t), speak) })
	}
}

// virtual is a server in virtual time with a proxy before it.
type virtual struct {
	*sim.Server
	net   *sim.Network
	proxy *redistest.Proxy
	speak func(*rueidis.ClientOption)
}

// inBubbles runs f in virtual time with each protocol.
func inBubbles(t *testing.T, f func(t *testing.T, v virtual)) {
	for name, speak := range protocols {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := new(sim.Network)
				srv := sim.Start(t, net)
				f(t, virtual{srv, net, srv.Proxy(t), speak})
			})
		})
	}
}

// open opens a Subscriber behind the proxy.
func (v virtual) open(t *testing.T, change ...func(*Subscriber)) *Subscriber {
	t.Helper()
	return open(t, v.Client(t, behind(v.proxy), v.speak), change...)
}

// requests counts those through the proxy that have a word, from now on.
func (v virtual) requests(word string) *atomic.Int64 {
	var n atomic.Int64
	v.proxy.OnRequest(redistest.Seeing(func(cmd []string) bool { return slices.Contains(cmd, word) }, func() { n.Add(1) }))
	return &n
}

// behind lets a client reach the server by a proxy.
func behind(proxy *redistest.Proxy) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }
}

// open returns a Subscriber that is closed with the test, before its client.
func open(t *testing.T, client rueidis.Client, change ...func(*Subscriber)) *Subscriber {
	t.Helper()
	s := New(client, nil)
	for _, f := range change {
		f(s)
	}
	t.Cleanup(s.Close)
	return s
}

// eachProtocol runs f on a real server under RESP3 and RESP2, and on the embedded one.
func eachProtocol(t *testing.T, f func(t *testing.T, client rueidis.Client)) {
	bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
		f(t, srv.Client(t, speak))
	})
	t.Run("embedded", func(t *testing.T) {
		m := miniredis.RunT(t)
		client := locktest.Must(rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{m.Addr()}, ForceSingleClient: true, DisableCache: true,
		}))(t)
		t.Cleanup(client.Close)
		f(t, client)
	})
}

// await waits, by wake-ups alone, until the state is as wanted.
func await(t *testing.T, sub *Subscription, what string, want func(State) bool) State {
	t.Helper()
	st, ok := reach(sub, want)
	require.True(t, ok, "never %s: %+v", what, st)
	return st
}

// reach is await for other goroutines than the test's.
func reach(sub *Subscription, want func(State) bool) (st State, ok bool) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		if st = sub.State(); want(st) {
			return st, true
		}
		select {
		case <-sub.Wake():
		case <-timeout.C:
			return st, false
		}
	}
}

func live(st State) bool { return st.Live }

func awaitLive(t *testing.T, subs ...*Subscription) {
	t.Helper()
	for _, sub := range subs {
		await(t, sub, "live", live)
	}
}

// again waits until the listener has been confirmed once more than in the given epoch.
func again(t *testing.T, sub *Subscription, epoch uint64) {
	t.Helper()
	await(t, sub, "live again", func(st State) bool { return st.Live && st.Epoch > epoch })
}

// publish returns how many connections received the message.
func publish(t *testing.T, client rueidis.Client, channel string) int64 {
	t.Helper()
	return locktest.Must(client.Do(t.Context(), client.B().Publish().Channel(channel).Message("0").Build()).AsInt64())(t)
}

// awaitDropped polls, as the server sends no event that the channel has no listener any more.
func awaitDropped(t *testing.T, client rueidis.Client, channel string) {
	t.Helper()
	locktest.Await(t, func() bool { return publish(t, client, channel) == 0 })
}

// named makes a client's connections countable by clients.
func named(o *rueidis.ClientOption) { o.ClientName = "named" }

// clients counts the named connections of one type.
func clients(t *testing.T, srv *redistest.Server, kind string) int {
	t.Helper()
	return strings.Count(srv.Do(t, "CLIENT", "LIST", "TYPE", kind).String(), "name=named")
}

// calls returns how often the server was asked for a command, refused or not.
func calls(t *testing.T, srv *redistest.Server, command string) int {
	run, refused := redistest.Calls(locktest.Text(t, srv, "INFO", "commandstats"))
	return run[command] + refused[command]
}

// known returns how many channels the Subscriber remembers.
func known(s *Subscriber) (known int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		known += len(n.channels)
	}
	return known
}

// openLogged is open for a Subscriber that logs.
func openLogged(t *testing.T, client rueidis.Client, change ...func(*Subscriber)) (*Subscriber, *redistest.Log) {
	t.Helper()
	log := &redistest.Log{}
	return open(t, client, append(change, withLog(log))...), log
}

func withLog(log *redistest.Log) func(*Subscriber) {
	return func(s *Subscriber) { s.log = slog.New(slog.NewTextHandler(log, nil)) }
}

func withPace(change func(*pace)) func(*Subscriber) { return func(s *Subscriber) { change(&s.pace) } }

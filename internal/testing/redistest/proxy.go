package redistest

import (
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Verdict is what a hook decides about one request or reply.
type Verdict int

const (
	// Pass forwards it.
	Pass Verdict = iota
	// Drop swallows it and all that follows in that direction of the connection,
	// its end included, as TCP does when a segment is lost for good. The
	// connection stays open, and the other direction works.
	Drop
	// Cut swallows it and closes the connection, after what came before it in
	// that direction has been forwarded. The client sees a reset.
	Cut
	// Hold keeps it and all that follows in that direction of the connection
	// until Release.
	Hold
)

// A Hook looks at a request, or at a reply given the request that it answers.
// cmd is the command as sent, and must not be changed. Hooks run on the
// connection's own goroutine: they may block, which holds that direction of the
// connection up, may be called for several connections at once, and may call the
// proxy.
type Hook func(cmd []string) Verdict

// direction of travel through the proxy.
type direction int

const (
	requests direction = iota
	replies
)

// Proxy forwards connections to a Redis server and injects faults. It reads
// plain RESP2 and RESP3, inline commands included, but neither TLS nor CLIENT
// REPLY OFF. Pushes (messages, confirmations of subscriptions, in RESP2 too)
// travel with the replies but are not replies: no hook sees them.
//
// A client that closes its connection is forwarded like bytes: a request that is
// held or delayed still arrives, and the end of the connection after it. While
// the target is down, new connections are accepted and reset.
//
// All methods may be called concurrently and act on open connections as well as
// on later ones.
type Proxy struct {
	t     testing.TB     // immutable after NewProxy
	net   Network        // immutable after NewProxy
	addr  string         // immutable after NewProxy
	tasks sync.WaitGroup // all goroutines; waited for when the test ends

	mu       sync.Mutex
	target   string                 // guarded by mu
	listener net.Listener           // guarded by mu; nil while refusing
	conns    map[*conn]struct{}     // guarded by mu
	sides    [replies + 1]sideState // guarded by mu
	swallows []*swallow             // guarded by mu
	words    ownWords               // guarded by mu
	releases int                    // calls of Release; guarded by mu
	changed  chan struct{}          // closed and replaced when held bytes may go on; guarded by mu
}

// sideState is what is set for one direction of all connections.
type sideState struct {
	delay  time.Duration
	jitter func() time.Duration // more delay; nil: none
	held   bool
	hook   Hook
}

// swallow is a pending SwallowReply.
type swallow struct {
	left  int // matching replies up to and with the one to swallow
	match func(cmd []string) bool
	done  chan struct{}
}

// NewProxy listens on a free loopback port and forwards to target until the test
// ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	return NewProxyOn(t, loopback{t}, target)
}

// Proxy puts a proxy before the server.
func (s *Server) Proxy(t testing.TB) *Proxy {
	t.Helper()
	return NewProxy(t, s.Addr())
}

// NewProxyOn is NewProxy on a network.
func NewProxyOn(t testing.TB, on Network, target string) *Proxy {
	t.Helper()
	l, err := on.Listen("")
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	p := &Proxy{
		t: t, net: on, addr: l.Addr().String(), target: target,
		listener: l, conns: map[*conn]struct{}{}, changed: make(chan struct{}),
	}
	p.tasks.Go(func() { p.accept(l) })
	t.Cleanup(func() {
		p.Refuse(true)
		p.Cut()
		p.tasks.Wait()
	})
	return p
}

// Target is the address that it forwards to.
func (p *Proxy) Target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Swap forwards to another target from now on, also on open connections: as a proxy does that keeps
// its clients while it changes the server. That gets what began the connection (HELLO, AUTH,
// SELECT, CLIENT), but no subscription. A connection with a request under way is cut. All change
// before a client can notice that one has.
func (p *Proxy) Swap(target string) {
	p.mu.Lock()
	p.target = target
	open := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	next := make([]net.Conn, len(open))
	for i, c := range open {
		next[i] = c.another()
	}
	var over []func()
	for i, c := range open {
		over = append(over, c.swap(next[i]))
	}
	for _, end := range over {
		end()
	}
}

// Addr is the host and port to which clients connect.
func (p *Proxy) Addr() string { return p.addr }

// SetDelay makes every request and every reply (and push) that arrives from now
// on travel for that long. Order is kept, throughput is not lowered.
func (p *Proxy) SetDelay(request, reply time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sides[requests].delay, p.sides[replies].delay = request, reply
}

// SetJitter makes each request and reply that arrives from now on travel for as long as f
// says on top of its delay; nil: for no longer. f must not call the proxy.
func (p *Proxy) SetJitter(f func() time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sides[requests].jitter, p.sides[replies].jitter = f, f
}

// OnRequest sets the hook for requests, called when one arrives and before it is
// forwarded; nil removes it.
func (p *Proxy) OnRequest(h Hook) { p.setHook(requests, h) }

// OnReply sets the hook for replies, called when one arrives, so that the server
// has carried the command out, and before it is forwarded; nil removes it.
func (p *Proxy) OnReply(h Hook) { p.setHook(replies, h) }

func (p *Proxy) setHook(d direction, h Hook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sides[d].hook = h
}

// SwallowReply swallows the k-th reply from now on (1 is the next) to a command
// that matches, any if match is nil, and cuts its connection. The channel is
// closed when the reply is out of the client's reach. It acts on replies that
// the hook passes; match must not call the proxy.
func (p *Proxy) SwallowReply(k int, match func(cmd []string) bool) <-chan struct{} {
	s := &swallow{left: k, match: match, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallows = append(p.swallows, s)
	return s.done
}

// ownWords are errors of the proxy's own, see OwnWords.
type ownWords struct {
	text    string
	instead bool
	match   func(cmd []string) bool // nil: none
}

// OwnWords has the proxy answer commands that match by an error with that text, as other
// proxies do in trouble: in place of the server's reply, so that the server has carried the
// command out, or with instead in place of the command, which the server then does not get.
// match is called as a hook is; nil ends it.
func (p *Proxy) OwnWords(text string, instead bool, match func(cmd []string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.words = ownWords{text, instead, match}
}

// own returns the text by which the proxy itself answers a command, if it does so.
func (p *Proxy) own(d direction, cmd []string) (text string, answers bool) {
	p.mu.Lock()
	w := p.words
	p.mu.Unlock()
	return w.text, w.match != nil && w.instead == (d == requests) && w.match(cmd)
}

// HoldRequests keeps all requests back, or lets those that were kept go on in
// their order. A request whose forwarding has begun still passes.
func (p *Proxy) HoldRequests(on bool) { p.hold(requests, on) }

// HoldReplies does the same with replies and pushes.
func (p *Proxy) HoldReplies(on bool) { p.hold(replies, on) }

func (p *Proxy) hold(d direction, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sides[d].held = on
	p.wake()
}

// Release lets go on, in their order, what hooks called before it have held.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releases++
	p.wake()
}

// wake tells the waiting goroutines to look again; p.mu is held.
func (p *Proxy) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Cut closes all connections, with a reset for the client. What was delayed or
// held is lost.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.close()
	}
}

// Refuse has the system refuse new connections, or accepts them again on the
// same port. Open connections stay.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on == (p.listener == nil) {
		return
	}
	if on {
		p.listener.Close()
		p.listener = nil
		return
	}
	l, err := p.net.Listen(p.addr)
	if err != nil {
		p.t.Errorf("redistest: Refuse(false): %v", err)
		return
	}
	p.listener = l
	p.tasks.Go(func() { p.accept(l) })
}

// accept serves one listener until it is closed.
func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		c := &conn{proxy: p, client: client, closed: make(chan struct{})}
		p.mu.Lock()
		p.conns[c] = struct{}{}
		if p.listener != l {
			c.close() // accepted at the moment of Refuse
		}
		p.mu.Unlock()
		p.tasks.Go(c.run)
	}
}

// judge decides about one frame of the connection in that direction. until is
// the number of releases that ends a Hold, fixed before the hook is called, so
// that a Release called from then on counts.
func (p *Proxy) judge(d direction, cmd []string) (v Verdict, until int) {
	p.mu.Lock()
	hook, until := p.sides[d].hook, p.releases+1
	p.mu.Unlock()
	if hook != nil {
		v = hook(cmd)
	}
	if v == Pass && d == replies && p.swallowed(cmd) {
		v = Cut
	}
	return v, until
}

// swallowed reports whether this reply is the one that some SwallowReply wants.
func (p *Proxy) swallowed(cmd []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.swallows {
		if s.match != nil && !s.match(cmd) {
			continue
		}
		if s.left--; s.left == 0 {
			p.swallows = append(p.swallows[:i], p.swallows[i+1:]...)
			close(s.done)
			return true
		}
	}
	return false
}

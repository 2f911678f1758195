package sim

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Server is a Redis on a [Network], with the methods of a redistest.Server and some more. Safe
// for concurrent use.
type Server struct {
	net    *Network             // immutable
	redis  *miniredis.Miniredis // immutable
	on     *server.Server       // that of redis, which must not be asked for it while it closes; immutable
	closed atomic.Bool          // redis closes
	addr   string               // immutable
	number string               // of this server among all, in hexadecimal digits; immutable
	admin  rueidis.Client       // for Do; immutable
	script scripting

	mu       sync.Mutex
	listener net.Listener          // nil while it is down; guarded by mu
	conns    map[net.Conn]struct{} // guarded by mu
	resumed  chan struct{}         // closed by Resume; nil unless it is paused; guarded by mu
	boots    int                   // with memory or without; guarded by mu
	began    time.Time             // the last time that it lost its memory or its name; guarded by mu
	ahead    time.Duration         // of its clock; guarded by mu
	refusal  string                // answers every script; "": none; guarded by mu
	policy   string                // maxmemory-policy; guarded by mu

	clients map[*server.Peer]phase // guarded by mu
}

// Start starts a server, which ends with the test.
func Start(t testing.TB, n *Network) *Server {
	t.Helper()
	s := &Server{net: n, redis: miniredis.NewMiniRedis(), conns: make(map[net.Conn]struct{}), clients: make(map[*server.Peer]phase), policy: "noeviction"}
	s.redis.ClockTTL(true)
	pipe := redistest.Must(s.redis.Dial())(t) // starts it
	_ = pipe.Close()
	s.on = s.redis.Server()
	s.on.SetPreHook(s.hook)
	t.Cleanup(func() { s.closed.Store(true); s.redis.Close() })
	l := redistest.Must(n.Listen(""))(t)
	s.addr = l.Addr().String()
	s.number = fmt.Sprintf("%x", s.addr)
	s.listen(l)
	s.admin = redistest.Must(rueidis.NewClient(n.Options(s.addr)))(t)
	t.Cleanup(func() { s.admin.Close(); s.Kill() })
	return s
}

// Addr is where it listens, or will again.
func (s *Server) Addr() string { return s.addr }

// Redis is what it has in its memory, for a test to look at.
func (s *Server) Redis() *miniredis.Miniredis { return s.redis }

// Client opens a client of the server, which is closed with the test. change may alter its
// options, the address included.
func (s *Server) Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	opt := s.net.Options(s.addr)
	for _, f := range change {
		f(&opt)
	}
	c := redistest.Must(rueidis.NewClient(opt))(t)
	t.Cleanup(c.Close)
	return c
}

// Proxy puts a proxy before the server.
func (s *Server) Proxy(t testing.TB) *redistest.Proxy {
	t.Helper()
	return redistest.NewProxyOn(t, s.net, s.addr)
}

// Do runs a command as administrator, on a connection apart from all clients. A nil reply is no
// error.
func (s *Server) Do(t testing.TB, args ...string) *rueidis.RedisMessage {
	t.Helper()
	m, err := s.TryDo(args...)
	require.NoError(t, err, strings.Join(args, " "))
	return &m
}

// TryDo is Do for commands that may fail, and for goroutines other than the test's own.
func (s *Server) TryDo(args ...string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var m rueidis.RedisMessage
	var err error
	for range 2 { // a restart has closed its connection
		m, err = s.admin.Do(ctx, s.admin.B().Arbitrary(args...).Build()).ToMessage()
		if _, answered := rueidis.IsRedisErr(err); err == nil || answered {
			break
		}
	}
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return m, err
}

// Pause has it stand still: it reads nothing until Resume.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed == nil {
		s.resumed = make(chan struct{})
	}
}

// Resume ends Pause. It carries out what has been sent meanwhile.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed != nil {
		close(s.resumed)
		s.resumed = nil
	}
}

// Kill ends it: its connections are closed, and new ones are refused until Restart.
func (s *Server) Kill() {
	s.Resume()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return
	}
	s.listener.Close()
	s.listener = nil
	for c := range s.conns {
		c.Close()
	}
}

// Restart starts it anew, without memory.
func (s *Server) Restart() {
	s.Kill()
	s.redis.FlushAll()
	s.restart()
}

// RestartWithMemory starts it anew, as with a file of all commands.
func (s *Server) RestartWithMemory() {
	s.Kill()
	s.restart()
}

func (s *Server) restart() {
	s.ForgetScripts()
	s.mu.Lock()
	s.boots++
	s.began = time.Now()
	s.mu.Unlock()
	l, err := s.net.Listen(s.addr)
	if err != nil {
		panic(err) // Kill has closed it
	}
	s.listen(l)
}

// Forget is FLUSHALL.
func (s *Server) Forget() {
	s.mu.Lock()
	s.began = time.Now()
	s.mu.Unlock()
	s.redis.FlushAll()
}

// Began is when it was last restarted or flushed: since then, it may have no vote.
func (s *Server) Began() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// ForgetScripts is SCRIPT FLUSH: the next calls get NOSCRIPT.
func (s *Server) ForgetScripts() { s.script.known.Clear() }

// JumpClock puts its clock ahead, or back. Keys expire by it.
func (s *Server) JumpClock(by time.Duration) {
	s.mu.Lock()
	s.ahead += by
	s.mu.Unlock()
	s.redis.FastForward(by)
}

// Refuse has it answer every script with this error, such as "LOADING …"; "": no longer.
func (s *Server) Refuse(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = text
}

// OutOfMemory has it refuse a script's first command if that needs memory.
func (s *Server) OutOfMemory(on bool) { s.script.full.Store(on) }

func (s *Server) listen(l net.Listener) {
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(l, c)
		}
	}()
}

func (s *Server) serve(by net.Listener, c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != by {
		c.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.on.ServeConn(&conn{c, s})
}

// conn is the server's end of a connection.
type conn struct {
	net.Conn
	server *Server
}

// Read waits while the server is paused. What it has read before, it still answers.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(c.server.net.Trip)
	c.server.awaitResume()
	return n, err
}

func (c *conn) Close() error {
	c.server.mu.Lock()
	delete(c.server.conns, c.Conn)
	c.server.mu.Unlock()
	return c.Conn.Close()
}

func (s *Server) awaitResume() {
	s.mu.Lock()
	resumed := s.resumed
	s.mu.Unlock()
	if resumed != nil {
		<-resumed
	}
}

package faults

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// subscriber is the connection on which a client hears messages. Held shut, messages are
// late, while calls are answered as ever.
type subscriber struct {
	mu   sync.Mutex
	open chan struct{} // guarded by mu; closed while messages pass
}

// withSubscriber is newHarness with a subscriber of the locker's client, which is open.
func withSubscriber(t *testing.T, d Kind, o Options) (*harness, *subscriber) {
	t.Helper()
	e := &subscriber{open: make(chan struct{})}
	close(e.open)
	r := newHarness(t, d, o, e.dialled)
	t.Cleanup(e.release)
	return r, e
}

// dialled is a change of options by which the client's connections pass the subscriber.
func (e *subscriber) dialled(o *rueidis.ClientOption) {
	Dialled(o, func(c net.Conn) net.Conn { return &subscriberConn{Conn: c, subscriber: e} })
}

// hold keeps what comes from now on until release. Both may be repeated.
func (e *subscriber) hold() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.open:
		e.open = make(chan struct{})
	default:
	}
}

func (e *subscriber) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.open:
	default:
		close(e.open)
	}
}

func (e *subscriber) opened() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// subscriberConn is a connection that is told to be a subscriber by the first SUBSCRIBE.
type subscriberConn struct {
	net.Conn
	subscriber *subscriber
	hears      atomic.Bool
}

func (c *subscriberConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("SUBSCRIBE\r\n")) {
		c.hears.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *subscriberConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.hears.Load() {
		<-c.subscriber.opened()
	}
	return n, err
}

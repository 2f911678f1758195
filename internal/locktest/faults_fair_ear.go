package locktest

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
)

// ear is the connection on which a client hears messages. Held shut, messages are
// late, while calls are answered as ever.
type ear struct {
	mu   sync.Mutex
	open chan struct{} // guarded by mu; closed while messages pass
}

// newEarRig is newFaultRig with an ear of the locker's client, which is open.
func newEarRig(t *testing.T, d Kind, o Options) (*faultRig, *ear) {
	t.Helper()
	e := &ear{open: make(chan struct{})}
	close(e.open)
	r := newFaultRig(t, d, o, e.dialled)
	t.Cleanup(e.release)
	return r, e
}

// dialled is a change of options by which the client's connections pass the ear.
func (e *ear) dialled(o *rueidis.ClientOption) {
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return &earConn{Conn: c, ear: e}, nil
	}
}

// hold keeps what comes from now on until release. Both may be repeated.
func (e *ear) hold() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.open:
		e.open = make(chan struct{})
	default:
	}
}

func (e *ear) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.open:
	default:
		close(e.open)
	}
}

func (e *ear) opened() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// earConn is a connection that is told to be an ear by the first SUBSCRIBE.
type earConn struct {
	net.Conn
	ear   *ear
	hears atomic.Bool
}

func (c *earConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("SUBSCRIBE\r\n")) {
		c.hears.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *earConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.hears.Load() {
		<-c.ear.opened()
	}
	return n, err
}

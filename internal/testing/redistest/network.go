package redistest

import (
	"net"
	"testing"
	"time"
)

// Network is where a proxy listens, and dials its target.
type Network interface {
	// Listen opens an address, a new one if addr is empty.
	Listen(addr string) (net.Listener, error)
	Dial(addr string) (net.Conn, error)
}

// loopback is that of this machine.
type loopback struct{ t testing.TB }

func (n loopback) Listen(addr string) (net.Listener, error) {
	if addr == "" {
		return listen(n.t), nil
	}
	return listenAgain(addr)
}

// dialTimeout ends the wait for a target that is paused and has no room left for
// new connections.
const dialTimeout = 5 * time.Second

func (loopback) Dial(addr string) (net.Conn, error) {
	return net.DialTimeout("tcp", addr, dialTimeout)
}

// reset closes a connection. Over TCP, its other end sees a reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

// closeWrite tells the other end that nothing follows.
func closeWrite(c net.Conn) {
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
}

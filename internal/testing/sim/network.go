package sim

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"
)

// Network connects by address, over pipes. It loses nothing, and takes no time beyond Trip: that
// is up to the proxies on it. Its zero value is ready for use. Safe for concurrent use.
type Network struct {
	// Trip is how long what is sent to a server takes to arrive. Set it before the first use.
	Trip time.Duration

	mu    sync.Mutex
	hosts map[string]*listener // by address; guarded by mu
	last  int                  // guarded by mu
}

// listener is a host that accepts connections.
type listener struct {
	net    *Network      // immutable
	addr   address       // immutable
	calls  chan net.Conn // the ends of those that dial
	closed chan struct{}
}

// duplex is one end of a connection. Each direction is a pipe, and ends by itself.
type duplex struct {
	net.Conn          // from which it reads
	out      net.Conn // to which it writes
}

func (d duplex) Write(b []byte) (int, error) { return d.out.Write(b) }
func (d duplex) CloseWrite() error           { return d.out.Close() }

func (d duplex) Close() error {
	d.out.Close()
	return d.Conn.Close()
}

func (d duplex) SetDeadline(t time.Time) error {
	_ = d.out.SetDeadline(t)
	return d.Conn.SetDeadline(t)
}

func (d duplex) SetWriteDeadline(t time.Time) error { return d.out.SetWriteDeadline(t) }

type address string

func (address) Network() string  { return "sim" }
func (a address) String() string { return string(a) }

// Listen opens an address, a new one if addr is empty.
func (n *Network) Listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr == "" {
		n.last++
		addr = fmt.Sprintf("10.0.%d.%d:6379", n.last/250, n.last%250+1)
	}
	if n.hosts[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "sim", Addr: address(addr), Err: syscall.EADDRINUSE}
	}
	if n.hosts == nil {
		n.hosts = make(map[string]*listener)
	}
	l := &listener{net: n, addr: address(addr), calls: make(chan net.Conn), closed: make(chan struct{})}
	n.hosts[addr] = l
	return l, nil
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.net.hosts[string(l.addr)] == l {
		delete(l.net.hosts, string(l.addr))
		close(l.closed)
	}
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

// Dial connects to an address; it is refused where nobody listens.
func (n *Network) Dial(addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.hosts[addr]
	n.mu.Unlock()
	if l != nil {
		up, there := net.Pipe()
		down, back := net.Pipe()
		select {
		case l.calls <- duplex{there, back}:
			return duplex{down, up}, nil
		case <-l.closed:
		}
	}
	return nil, &net.OpError{Op: "dial", Net: "sim", Addr: address(addr), Err: syscall.ECONNREFUSED}
}

// Options are those of a client on the network.
func (n *Network) Options(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true,
		ReadBufferEachConn: 16 << 10, WriteBufferEachConn: 16 << 10, RingScaleEachConn: 8, // else there are 13 MiB of them
		DialCtxFn: func(_ context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return n.Dial(addr)
		},
	}
}

package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Ports lie below the ranges from which systems take the local ports of outgoing
// connections. Within those ranges a client that dials a closed port may be
// connected to itself, or take the port that is to be opened again.
const (
	lowest, highest = 12000, 32000
	block           = 250 // ports that a process takes at once
)

// ports chooses each port once: one that is closed for a while, as by Refuse, is
// nobody else's meanwhile. A lock on a file keeps a block of ports from other
// processes for as long as this one lives.
var ports struct {
	mu        sync.Mutex
	next, end int        // guarded by mu
	locks     []*os.File // guarded by mu; kept open
}

func choosePort() (int, error) {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	if ports.next == ports.end {
		if err := takeBlock(); err != nil {
			return 0, err
		}
	}
	ports.next++
	return ports.next - 1, nil
}

// takeBlock takes a block that no process has. ports.mu is held.
func takeBlock() error {
	blocks := (highest - lowest) / block
	if Before7() { // where a Cluster node's second port is 10 000 higher than its first
		blocks -= 10000 / block
	}
	for _, i := range rand.Perm(blocks) {
		name := filepath.Join(os.TempDir(), "redistest-ports-"+strconv.Itoa(lowest+i*block))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			continue // another user's
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			ports.locks = append(ports.locks, f)
			ports.next = lowest + i*block
			ports.end = ports.next + block
			return nil
		}
		f.Close()
	}
	return errors.New("all ports for tests are taken")
}

// listen opens a loopback port.
func listen(t testing.TB) net.Listener {
	t.Helper()
	for range 100 {
		port, err := choosePort()
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return l
		}
	}
	t.Fatal("redistest: no free port found")
	return nil
}

// FreePort returns a free loopback port for something that Start does not choose
// by itself, such as "--tls-port". No other test is given it.
func FreePort(t testing.TB) int {
	l := listen(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// listenAgain opens a port that was closed, perhaps a moment ago: a process that
// this one was starting just then has it, too, until it runs its program.
func listenAgain(addr string) (l net.Listener, err error) {
	for end := time.Now().Add(Patience); ; time.Sleep(time.Millisecond) {
		if l, err = net.Listen("tcp", addr); err == nil || time.Now().After(end) {
			return l, err
		}
	}
}

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

package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"
)

// listen opens a loopback port below the ranges from which systems take the
// local ports of outgoing connections. Within those ranges a client that dials a
// closed port may be connected to itself, or take the port that is to be opened
// again.
func listen(t testing.TB) net.Listener {
	const low, high = 12000, 32000
	for range 100 {
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return l
		}
	}
	t.Fatal("redistest: no free port found")
	return nil
}

// FreePort returns a free loopback port for something that Start does not choose
// by itself, such as "--tls-port". Until it is used, somebody else may take it.
func FreePort(t testing.TB) int {
	l := listen(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// listenAgain opens a port that was closed, perhaps a moment ago: a process that
// this one was starting just then has it, too, until it runs its program.
func listenAgain(addr string) (l net.Listener, err error) {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if l, err = net.Listen("tcp", addr); err == nil || time.Now().After(end) {
			return l, err
		}
	}
}

package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// quiet bounds waits for what must not come.
const quiet = 10 * time.Millisecond

// wire is a bare connection that sends commands and compares bytes.
type wire struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dial(t *testing.T, addr string) *wire {
	t.Helper()
	c := Must(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { c.Close() })
	return &wire{t: t, conn: c, r: bufio.NewReader(c)}
}

// send sends commands in one piece.
func (w *wire) send(cmds ...string) {
	w.t.Helper()
	var b strings.Builder
	for _, cmd := range cmds {
		words := strings.Fields(cmd)
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	_, err := w.conn.Write([]byte(b.String()))
	require.NoError(w.t, err)
}

// expect reads these frames and nothing else.
func (w *wire) expect(frames ...string) {
	w.t.Helper()
	for _, want := range frames {
		require.Equal(w.t, want, w.next())
	}
}

// next is the next frame, whole.
func (w *wire) next() string {
	w.t.Helper()
	require.NoError(w.t, w.conn.SetReadDeadline(time.Now().Add(Patience)))
	return string(Must(readFrame(w.r))(w.t).raw)
}

func (w *wire) expectSilence() {
	w.t.Helper()
	require.NoError(w.t, w.conn.SetReadDeadline(time.Now().Add(quiet)))
	_, err := w.r.Peek(1)
	require.ErrorIs(w.t, err, os.ErrDeadlineExceeded)
	w.r.Reset(w.conn) // forget the error
}

func (w *wire) expectReset() {
	w.t.Helper()
	require.NoError(w.t, w.conn.SetReadDeadline(time.Now().Add(Patience)))
	_, err := w.r.Peek(1)
	require.ErrorIs(w.t, err, syscall.ECONNRESET)
}

// await waits until the administrator reads the value of the key.
func await(t *testing.T, s *Server, key, value string) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, _ := s.Do(t, "GET", key).ToString()
		return got == value
	}, Patience, time.Millisecond)
}

// awaitAlone waits until the server has no connection but the administrator's.
func awaitAlone(t *testing.T, s *Server) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(s.ask(t, "INFO", "clients"), "connected_clients:1\r\n")
	}, Patience, time.Millisecond)
}

// A frame ends where its value does, and its words are bulk strings or stand between spaces.
func TestReadFrame(t *testing.T) {
	values := []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(12\r\n",
		"$0\r\n\r\n", "$-1\r\n", "$5\r\na\r\nbc\r\n", "=5\r\ntxt:a\r\n", "!3\r\nERR\r\n",
		"*0\r\n", "*-1\r\n", "*2\r\n*1\r\n:1\r\n$1\r\na\r\n", "~1\r\n+a\r\n",
		"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", ">2\r\n+a\r\n+b\r\n",
		"|1\r\n+ttl\r\n:1\r\n$1\r\na\r\n", "SET  k v\r\n",
	}
	words := map[string][]string{
		"$5\r\na\r\nbc\r\n":             {"a\r\nbc"},
		"*2\r\n*1\r\n:1\r\n$1\r\na\r\n": {"a"},
		"*0\r\n":                        {},
		"SET  k v\r\n":                  {"SET", "k", "v"},
	}
	r := bufio.NewReader(strings.NewReader(strings.Join(values, "")))
	for _, want := range values {
		f, err := readFrame(r)
		require.NoError(t, err, "%q", want)
		require.Equal(t, want, string(f.raw))
		if expected, ok := words[want]; ok {
			require.Equal(t, expected, f.words(-1), "%q", want)
		}
	}
}

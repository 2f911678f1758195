package redistest

import (
	"bufio"
	"fmt"
	"io"
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
	conn *net.TCPConn
	r    *bufio.Reader
}

func dial(t *testing.T, addr string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return &wire{t: t, conn: c.(*net.TCPConn), r: bufio.NewReader(c)}
}

// encode writes a command as clients send it.
func encode(cmd string) string {
	words := strings.Fields(cmd)
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

// send sends commands in one piece.
func (w *wire) send(cmds ...string) {
	w.t.Helper()
	var b strings.Builder
	for _, cmd := range cmds {
		b.WriteString(encode(cmd))
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
	f, err := readFrame(w.r)
	require.NoError(w.t, err)
	return string(f.raw)
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
	require.ErrorIs(w.t, w.end(), syscall.ECONNRESET)
}

func (w *wire) expectEOF() {
	w.t.Helper()
	require.ErrorIs(w.t, w.end(), io.EOF)
}

func (w *wire) end() error {
	_ = w.conn.SetReadDeadline(time.Now().Add(Patience))
	_, err := w.r.Peek(1)
	return err
}

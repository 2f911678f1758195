package redistest

import (
	"bufio"
	"bytes"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Command is one that Redis has carried out.
type Command struct {
	At       time.Time // by the server's clock
	Scripted bool      // by a script
	Words    []string  // the first, its name, in capitals
}

// Monitor has Redis tell all that it does, commands within scripts included, in the
// order in which it does so. each is called for every command, on one goroutine,
// until stop, which returns when it has seen all that Redis had done by then.
func (s *Server) Monitor(t testing.TB, each func(Command)) (stop func()) {
	t.Helper()
	conn := Must(net.Dial("tcp", s.Addr()))(t)
	_, err := conn.Write([]byte("MONITOR\r\n"))
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	_, err = in.ReadString('\n') // +OK
	require.NoError(t, err)
	const last = "that is all"
	done := make(chan struct{})
	go func() { // ends with the connection, or with stop
		defer close(done)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			c, ok := ParseMonitored(line)
			if ok && len(c.Words) == 2 && c.Words[1] == last {
				return
			}
			if ok {
				each(c)
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return func() {
		s.Do(t, "ECHO", last)
		<-done
	}
}

// ParseMonitored reads a line of MONITOR:
//
//	+1700000000.123456 [0 lua] "hset" "k" "owner" "1"
func ParseMonitored(line string) (c Command, ok bool) {
	stamp, rest, _ := strings.Cut(line, " [")
	seconds, micros, _ := strings.Cut(strings.TrimPrefix(stamp, "+"), ".")
	at, err := strconv.ParseInt(seconds+micros, 10, 64)
	if err != nil {
		return c, false
	}
	from, rest, ok := strings.Cut(rest, "] ")
	c.At, c.Scripted = time.UnixMicro(at), strings.HasSuffix(from, " lua")
	for ok && strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return c, false
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return c, false
		}
		c.Words = append(c.Words, word)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	if len(c.Words) == 0 {
		return c, false
	}
	c.Words[0] = strings.ToUpper(c.Words[0])
	return c, true
}

// Log collects what a logger or a process writes. Its zero value is ready for use. Safe
// for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count is how often s has been written.
func (l *Log) Count(s string) int { return strings.Count(l.String(), s) }

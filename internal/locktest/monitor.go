package locktest

import (
	"bufio"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// monitor has Redis tell all that it does, commands within scripts included, in the
// order in which it does so. each is called for every command, on one goroutine,
// until stop, which returns when it has seen all that Redis had done by then.
func monitor(t testing.TB, s *redistest.Server, each func(command)) (stop func()) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	_, err = conn.Write([]byte("MONITOR\r\n"))
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
			c, ok := parseMonitored(line)
			if ok && c.words[0] == "ECHO" && len(c.words) == 2 && c.words[1] == last {
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

// command is one that Redis has carried out.
type command struct {
	scripted bool // by a script
	words    []string
}

// parseMonitored reads a line of MONITOR:
//
//	+1700000000.123456 [0 lua] "HSET" "k" "owner" "1"
func parseMonitored(line string) (c command, ok bool) {
	_, rest, _ := strings.Cut(line, "[")
	from, rest, ok := strings.Cut(rest, "] ")
	c.scripted = strings.HasSuffix(from, " lua")
	for ok && strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return c, false
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return c, false
		}
		c.words = append(c.words, word)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	return c, len(c.words) > 0
}

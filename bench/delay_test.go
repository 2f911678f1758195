package main

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The proxy delays many requests at a time no longer than one.
func TestDelay(t *testing.T) {
	needServer(t)
	s, err := startServer()
	require.NoError(t, err)
	defer s.stop()
	const trip, requests = 40 * time.Millisecond, 100
	proxy, end, err := delay(s.addr, trip)
	require.NoError(t, err)
	defer end()
	conn, err := net.Dial("tcp", proxy)
	require.NoError(t, err)
	defer conn.Close()
	replies := bufio.NewReader(conn)

	asked := time.Now()
	for range requests {
		_, err := io.WriteString(conn, "PING\r\n")
		require.NoError(t, err)
		time.Sleep(trip / requests) // else they are one parcel
	}
	for i := range requests {
		line, err := replies.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "+PONG", strings.TrimSpace(line))
		if i == 0 {
			require.GreaterOrEqual(t, time.Since(asked), trip)
		}
	}
	require.Less(t, time.Since(asked), requests*trip/2)

	s.stop()
	_, err = replies.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the end of a connection travels as well")
}

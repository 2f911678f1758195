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
	s := emptyServer(t)
	const trip, requests = 400 * time.Millisecond, 100
	proxy, end := delay(s.seeds[0], trip)
	defer end()
	conn, err := net.Dial("tcp", proxy)
	require.NoError(t, err)
	defer conn.Close()
	replies := bufio.NewReader(conn)

	ask := func() {
		_, err := io.WriteString(conn, "PING\r\n")
		require.NoError(t, err)
	}
	hear := func() {
		line, err := replies.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "+PONG", strings.TrimSpace(line))
	}
	asked := time.Now()
	ask()
	hear()
	require.GreaterOrEqual(t, time.Since(asked), trip)

	asked = time.Now()
	for range requests {
		ask()
		time.Sleep(trip / requests) // without this, they are one parcel
	}
	for range requests {
		hear()
	}
	require.Less(t, time.Since(asked), requests*trip/2)

	s.stop()
	_, err = replies.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the end of a connection travels as well")
}

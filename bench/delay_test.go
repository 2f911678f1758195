package main

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// The proxy delays many requests at a time no longer than one.
func TestDelay(t *testing.T) {
	s := emptyServer(t)
	const trip, requests = 400 * time.Millisecond, 100
	proxy, end := delay(s.seeds[0], trip)
	defer end()
	conn := redistest.Must(net.Dial("tcp", proxy))(t)
	defer conn.Close()
	replies := bufio.NewReader(conn)

	ask := func() { redistest.Must(io.WriteString(conn, "PING\r\n"))(t) }
	hear := func() { require.Equal(t, "+PONG\r\n", redistest.Must(replies.ReadString('\n'))(t)) }
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
	_, err := replies.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the end of a connection travels as well")
}

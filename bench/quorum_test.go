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

// until waits for what others bring about.
func until(t *testing.T, what func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !what(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(limit), "not within %v", patience)
	}
}

// A cycle on a quorum is two calls to each node and nothing else.
func TestTwoCallsPerCycleAndNode(t *testing.T) {
	needServer(t)
	all, err := startNodes(3)
	require.NoError(t, err)
	defer all.stop()
	l, err := openMultilock(all.addrs(), usualLease)
	require.NoError(t, err)
	defer l.close()
	everywhere := func(want int64) {
		for _, s := range all {
			until(t, func() bool {
				reply, err := s.do("EXISTS", "key")
				require.NoError(t, err)
				n, err := reply.AsInt64()
				require.NoError(t, err)
				return n == want
			})
		}
	}
	once := func() error {
		err := l.cycle("key")(func() { everywhere(1) })
		everywhere(0)
		return err
	}
	require.NoError(t, once()) // looks, and teaches Redis the scripts
	sent, err := all.callsDuring(once)
	require.NoError(t, err)
	require.Equal(t, 2*len(all), sent["evalsha"])
	require.Equal(t, 2*len(all), sent.sent())
}

// A library on a quorum stands beside others by the same figures as one on a node, but
// for Jain's index over processes: there is one.
func TestQuorumColumns(t *testing.T) {
	needServer(t)
	w := load{goroutines: 4}
	for _, name := range []string{multilockName, redsyncName, redsyncGoRedisName} {
		got, err := w.quorum(name).run(nil, 50*time.Millisecond)
		require.NoError(t, err)
		for _, c := range columns {
			if c.figure != "" && c.figure != "Jain's index" {
				require.Positive(t, got.known()[c.figure], "%s: %s", name, c.figure)
			}
		}
		require.Greater(t, got["commands/cycle"], 2.5, "%s: of all nodes, not of each", name)
		require.LessOrEqual(t, got["commands/cycle"], 2*masters+0.5, name) // a node that is late has its last ones yet to come
		require.LessOrEqual(t, got["Jain of goroutines"], 1.0)
	}
}

// The proxy delays each way, many requests at a time no longer than one.
func TestDelay(t *testing.T) {
	needServer(t)
	s, err := startServer()
	require.NoError(t, err)
	defer s.stop()
	const trip, requests = 40 * time.Millisecond, 100
	p, err := delay(s.addr, trip)
	require.NoError(t, err)
	defer p.close()
	conn, err := net.Dial("tcp", p.addr())
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
	require.ErrorIs(t, err, io.EOF, "the end of a connection travels, too")
}

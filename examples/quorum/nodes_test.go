package main

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// The faults do what they are called, on both kinds of servers.
func TestServers(t *testing.T) {
	for name, asked := range map[string][]string{
		"real": nil, "embedded": {"-embedded"}, "embedded, that forget": {"-embedded", "-guard=false"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "real" {
				needRedis(t)
			}
			o, err := parseFlags(asked, nil)
			require.NoError(t, err)
			nodes, err := startNodes(o)
			require.NoError(t, err)
			defer stopNodes(nodes)
			require.Len(t, nodes, masters)
			s, addr := nodes[0].server, nodes[0].addr

			require.NoError(t, ask(addr, "SET", "x", "1"))
			s.pause()
			asked, silent := time.Now(), make(chan error, 1)
			go func() { silent <- ask(addr, "SET", "x", "2") }() // ends before the test
			select {
			case err := <-silent:
				require.Fail(t, "a paused server answers", "%v after %v", err, time.Since(asked))
			case <-time.After(100 * time.Millisecond):
			}
			s.resume()
			require.NoError(t, <-silent, "a paused server forgets calls")
			require.NoError(t, ask(addr, "GET", "x"))

			s.pause()
			s.kill()
			require.ErrorContains(t, ask(addr, "GET", "x"), "refused")
			require.NoError(t, s.start())
			require.Equal(t, name != "embedded", rueidis.IsRedisNil(ask(addr, "GET", "x")), "whether it is empty")
			require.NoError(t, ask(nodes[1].addr, "PING"), "another node")
		})
	}
}

// ask has a server at addr do one command.
func ask(addr string, command ...string) error {
	c, err := connect(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return c.Do(ctx, c.B().Arbitrary(command...).Build()).Error()
}

// A node that cannot be started is told, and leaves no other behind.
func TestNoServerStarts(t *testing.T) {
	_, err := startNodes(options{redis: "/nowhere/redis-server"})
	require.ErrorContains(t, err, "node 1 cannot be started: ")
	_, err = startNodes(options{redis: "false"})
	require.ErrorContains(t, err, "redis-server ended")
}

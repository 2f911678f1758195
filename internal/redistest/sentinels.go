package redistest

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Sentinels are three Sentinels that watch many masters, and make no other server the master
// within an hour. Safe for concurrent use.
type Sentinels []*Server

// StartSentinels runs three Sentinels that watch nothing yet.
func StartSentinels(t testing.TB) (all Sentinels) {
	t.Helper()
	for range 3 {
		file := filepath.Join(t.TempDir(), "sentinel.conf") // Sentinels write what they learn into it
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		all = append(all, start(t, &Server{watch: file}))
	}
	return all
}

// Start runs a master with two replicas that the Sentinels watch, and returns when all are
// connected to it. Its clients ask the Sentinels for it. args are those of [Start].
func (w Sentinels) Start(t testing.TB, args ...string) *Server {
	t.Helper()
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	s := start(t, &Server{args: args, sentinels: w})
	port := strconv.Itoa(s.port)
	for range 2 {
		Start(t, append([]string{"--replicaof", "127.0.0.1", port}, args...)...)
	}
	for _, one := range w {
		one.Do(t, "SENTINEL", "MONITOR", s.masterSet(), "127.0.0.1", port, "2")
		one.Do(t, "SENTINEL", "SET", s.masterSet(), "down-after-milliseconds", "3600000")
		t.Cleanup(func() { _, _ = one.TryDo("SENTINEL", "REMOVE", s.masterSet()) })
	}
	require.Eventually(t, func() bool {
		m := s.Do(t, "CLIENT", "LIST")
		connected, err := m.ToString()
		return err == nil && strings.Count(connected, " name=sentinel-") == 2*len(w) && strings.Count(connected, " flags=S ") == 2
	}, sentinelPatience, 5*time.Millisecond, "connections of Sentinels and replicas")
	return s
}

// masterSet is the name of a server that is watched by [Sentinels].
func (s *Server) masterSet() string { return "locks-" + strconv.Itoa(s.port) }

// askSentinels has a client ask the Sentinels for its master. It dials the address that it
// was given, a proxy's perhaps, in place of the one that they name.
func (s *Server) askSentinels(o *rueidis.ClientOption) {
	given, dial := o.InitAddress[0], o.DialCtxFn
	o.InitAddress = nil
	for _, one := range s.sentinels {
		o.InitAddress = append(o.InitAddress, one.Addr())
	}
	o.Sentinel.MasterSet, o.Sentinel.TopologyRefreshInterval = s.masterSet(), time.Minute
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		if addr != s.Addr() {
			return d.DialContext(ctx, "tcp", addr)
		}
		if dial != nil {
			return dial(ctx, given, d, c)
		}
		return d.DialContext(ctx, "tcp", given)
	}
}

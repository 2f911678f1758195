package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ClusterNode returns the arguments with which [Start] runs a server that is a node of
// a Redis Cluster. It has the slots of own, as in "0-16383". Those of others, if any,
// are of a node of which it has only heard. It serves within some seconds.
func ClusterNode(t testing.TB, own, others string) []string {
	t.Helper()
	// Valkey shows a node without a shard in CLUSTER SLOTS, but not in CLUSTER SHARDS. Redis 6.2
	// and 7.0 take no notice of it.
	a, b := strings.Repeat("a", 40), strings.Repeat("b", 40)
	nodes := fmt.Sprintf("%s 127.0.0.1:0@0,,shard-id=%s myself,master - 0 0 1 connected %s\n", a, a, own)
	if others != "" {
		nodes += fmt.Sprintf("%s 127.0.0.1:%d@%d,,shard-id=%s master - 0 0 2 connected %s\n",
			b, FreePort(t), FreePort(t), b, others)
	}
	file := filepath.Join(t.TempDir(), "nodes.conf")
	require.NoError(t, os.WriteFile(file, []byte(nodes+"vars currentEpoch 2 lastVoteEpoch 0\n"), 0o600))
	return append(clusterPort(t), "--cluster-enabled", "yes", "--cluster-config-file", file,
		"--cluster-node-timeout", "3600000") // the other one is not missed
}

// AwaitClusterNode returns when a node of a Redis Cluster serves its slots, or loads.
func (s *Server) AwaitClusterNode(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool {
		m, _ := s.TryDo("CLUSTER", "INFO")
		info, _ := m.ToString()
		_, err := s.TryDo("PING")
		return loading(err) || strings.Contains(info, "cluster_state:ok")
	}, startTimeout, startTimeout/2000)
}

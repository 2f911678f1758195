package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ClusterNode returns the arguments with which [Start] runs a server that is a node of
// a Redis Cluster. It has the slots of own, as in "0-16383". Those of others, if any,
// are of a node of which it has only heard. It serves within some seconds.
func ClusterNode(t testing.TB, own, others string) []string {
	t.Helper()
	nodes := []clusterNode{{id: clusterIDs[0], slots: own}}
	if others != "" {
		nodes = append(nodes, clusterNode{id: clusterIDs[1], slots: others})
	}
	return knowing(t, nodes, 0)
}

// StartClusterMaster runs a Redis Cluster of three masters with a replica each. It returns the
// master that has all slots but the last two. No replica takes over, and none is missed. args
// are those of [Start], for that master. It serves within some seconds.
func StartClusterMaster(t testing.TB, args ...string) *Server {
	t.Helper()
	nodes := []clusterNode{
		{id: clusterIDs[0], slots: "0-16381"}, {id: clusterIDs[1], slots: "16382"}, {id: clusterIDs[2], slots: "16383"},
		{id: clusterIDs[3], of: clusterIDs[0]}, {id: clusterIDs[4], of: clusterIDs[1]}, {id: clusterIDs[5], of: clusterIDs[2]},
	}
	for i := range nodes { // each comes to know those before it by its file, and those after it as they connect to it
		nodes[i].server = Start(t, slices.Concat(knowing(t, nodes, i), args)...)
		args = []string{"--cluster-replica-no-failover", "yes"}
	}
	master := nodes[0].server
	for _, n := range nodes[1:] {
		master.peers = append(master.peers, n.server)
	}
	return master
}

// Peers are the other nodes of the Redis Cluster of a server of [StartClusterMaster].
func (s *Server) Peers() []*Server { return s.peers }

// clusterNode is what a node's file says of a node.
type clusterNode struct {
	id     string
	slots  string  // "": it has none
	of     string  // whose replica it is; "": a master
	server *Server // nil: not started
}

// clusterIDs are those of nodes that are made by files.
var clusterIDs = [6]string{strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40), strings.Repeat("d", 40), strings.Repeat("e", 40), strings.Repeat("f", 40)}

// knowing returns the arguments that run one of nodes, which knows them all.
func knowing(t testing.TB, nodes []clusterNode, myself int) []string {
	t.Helper()
	var text strings.Builder
	for i, n := range nodes {
		addr, flags, of, shard := "127.0.0.1:1@1", "master", "-", n.id // where nobody listens
		if n.server != nil {
			addr = n.server.Addr() + "@" + n.server.clusterPort()
		}
		if n.of != "" {
			flags, of, shard = "slave", n.of, n.of
		}
		if i == myself {
			flags = "myself," + flags
		}
		// Valkey shows a node without a shard in CLUSTER SLOTS, but not in CLUSTER SHARDS. Redis 6.2
		// and 7.0 take no notice of it.
		fmt.Fprintf(&text, "%s %s,,shard-id=%s %s %s 0 0 %d connected %s\n", n.id, addr, shard, flags, of, i+1, n.slots)
	}
	fmt.Fprintf(&text, "vars currentEpoch %d lastVoteEpoch 0\n", len(nodes))
	file := filepath.Join(t.TempDir(), "nodes.conf")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	return []string{
		"--cluster-enabled", "yes", "--cluster-config-file", file, "--cluster-port", strconv.Itoa(FreePort(t)),
		"--cluster-node-timeout", "3600000", // no other is missed
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", // a replica's copy leaves no file
	}
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

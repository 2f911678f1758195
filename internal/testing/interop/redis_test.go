package interop

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// redis is where locks are kept: one server, or a Redis Cluster.
type redis struct {
	addrs  string                                           // for agents; those of a cluster have commas between
	of     func(t testing.TB, key string) *redistest.Server // the server that has a key
	numsub string                                           // of PUBSUB: counts the listeners of a lock
}

func (r redis) clustered() bool { return strings.Contains(r.addrs, ",") }

// one is the Redis of a single server.
func one(s *redistest.Server) redis {
	return redis{s.Addr(), func(testing.TB, string) *redistest.Server { return s }, "NUMSUB"}
}

// cluster starts a Redis Cluster of three masters with shard channels.
func cluster(t testing.TB) redis { return clusterWith(t, "SHARDNUMSUB") }

// classicCluster starts one that refuses shard channels, and also tells nobody whether it has
// them. So both languages use classic channels.
func classicCluster(t testing.TB) redis {
	return clusterWith(t, "NUMSUB",
		"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-pubsub|shardnumsub", "-spublish", "-ssubscribe")
}

func clusterWith(t testing.TB, numsub string, args ...string) redis {
	c := redistest.StartCluster(t, 3, 0, args...)
	var addrs []string
	for _, s := range c.Masters(t) {
		addrs = append(addrs, s.Addr())
	}
	return redis{strings.Join(addrs, ","), c.Owner, numsub}
}

// onServerAndCluster runs a test on one server, and on a Redis Cluster.
func onServerAndCluster(t *testing.T, run func(t *testing.T, s redis)) {
	needJava(t)
	t.Run("Server", func(t *testing.T) { run(t, one(redistest.Start(t))) })
	t.Run("Cluster", func(t *testing.T) { run(t, cluster(t)) })
}

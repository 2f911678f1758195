package redistest

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := StartCluster(t, 3, 1)
	t.Log("up after", time.Since(began))
	require.Len(t, c.Masters(t), 3)
	require.Len(t, c.Replicas(t), 3)
	client := c.Client(t)
	nodes := client.Nodes()
	for _, s := range c.nodes {
		require.Contains(t, nodes, s.Addr())
	}
	for _, key := range []string{"a", "b", "{a}b", "hello"} { // 15495, 3300, 866
		require.NoError(t, client.Do(t.Context(), client.B().Set().Key(key).Value("v").Build()).Error())
		require.Equal(t, "v", c.Owner(t, key).ask(t, "GET", key))
	}
	require.Equal(t, 15495, c.Slot(t, "{a}b"))
	require.Equal(t, c.Masters(t)[2], c.Owner(t, "a"))
	require.Equal(t, c.Masters(t)[0], c.Owner(t, "b"))

	t.Run("migration", func(t *testing.T) {
		slot, from, to := c.Slot(t, "a"), c.Owner(t, "a"), c.Owner(t, "b")
		_, err := to.TryDo("GET", "a")
		require.ErrorContains(t, err, "MOVED 15495 "+from.Addr())
		c.BeginMigration(t, slot, to)
		_, err = from.TryDo("GET", "{a}new")
		require.ErrorContains(t, err, "ASK 15495 "+to.Addr())
		c.MoveKeys(t, slot, to, "a")
		_, err = from.TryDo("GET", "a")
		require.ErrorContains(t, err, "ASK")
		_, err = from.TryDo("MGET", "a", "{a}b")
		require.Regexp(t, "^(TRYAGAIN|ASK)", err.Error())
		c.MoveKeys(t, slot, to)
		c.EndMigration(t, slot, to)
		require.Equal(t, to, c.Owner(t, "a"))
		require.Equal(t, "v", to.ask(t, "GET", "{a}b"))
		_, err = from.TryDo("GET", "a")
		require.ErrorContains(t, err, "MOVED 15495 "+to.Addr())
		c.Migrate(t, slot, from)
		require.Equal(t, "v", from.ask(t, "GET", "a"))
	})
	t.Run("fail-over", func(t *testing.T) {
		for range 2 { // there and back
			old := c.Owner(t, "a")
			replica := c.Failover(t, old)
			require.Equal(t, replica, c.Owner(t, "a"))
			require.Contains(t, c.Replicas(t), old)
			require.Equal(t, "v", replica.ask(t, "GET", "a"))
		}
	})
	t.Run("death", func(t *testing.T) {
		dead := c.Owner(t, "b")
		c.Kill(dead)
		c.AwaitPromoted(t, dead)
		require.NotEqual(t, dead, c.Owner(t, "b"))
		require.Equal(t, "v", c.Owner(t, "b").ask(t, "GET", "b"))
		require.Len(t, c.Masters(t), 3)
		require.Len(t, c.Replicas(t), 2)
		dead.Restart()
		c.await(t, "it follows its successor", func() bool { return c.serves(t) && c.replicated(t, 3) })
	})
	t.Run("pause", func(t *testing.T) {
		paused := c.Owner(t, "c")
		paused.Pause()
		defer paused.Resume()
		c.AwaitPromoted(t, paused)
		require.NotEqual(t, paused, c.Owner(t, "c"))
	})
}

func TestClusterPassesArguments(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 2, 0, "--requirepass", "secret", "--cluster-node-timeout", "1234")
	client := c.Client(t, func(o *rueidis.ClientOption) { o.ClientName = "mine" })
	require.NoError(t, client.Do(t.Context(), client.B().Set().Key("a").Value("v").Build()).Error())
	require.Contains(t, c.Owner(t, "a").ask(t, "CLIENT", "LIST"), "name=mine")
	m := c.nodes[0].Do(t, "CONFIG", "GET", "cluster-node-timeout")
	got, err := m.AsStrMap()
	require.NoError(t, err)
	require.Equal(t, "1234", got["cluster-node-timeout"])
}

package demo_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/demo"
)

func TestEmbeddedServerRefusesToKeepData(t *testing.T) {
	m := miniredis.NewMiniRedis()
	for range 2 { // also when it starts again
		require.NoError(t, demo.StartEmbedded(m, "127.0.0.1:0"))
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.Addr()}, DisableCache: true, ForceSingleClient: true})
		require.NoError(t, err)
		do := func(command ...string) error {
			return client.Do(t.Context(), client.B().Arbitrary(command...).Build()).Error()
		}
		for _, command := range [][]string{
			{"SAVE"}, {"bgsave"}, {"BGREWRITEAOF"}, {"CONFIG", "SET", "save", "60 1"}, {"config", "rewrite"},
			{"REPLICAOF", "127.0.0.1", "6379"}, {"SLAVEOF", "127.0.0.1", "6379"}, {"WAIT", "1", "0"}, {"WAITAOF", "1", "0", "0"},
		} {
			require.ErrorContains(t, do(command...), "refused: this Redis is part of an example and forgets everything", command)
		}
		for _, command := range [][]string{{"SET", "key", "value"}, {"PING"}} {
			require.NoError(t, do(command...), command)
		}
		require.NotContains(t, do("CONFIG", "GET", "save").Error(), "refused")
		client.Close()
		m.Close()
	}
}

package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/scripts"
)

func TestNames(t *testing.T) {
	for key, braced := range map[string]string{"sku:42": "{sku:42}", "{a}b": "{a}b", "a{b": "a{b", "a}b": "{a}b}", " \r\n\x00": "{ \r\n\x00}"} {
		channel, token := "redisson_lock__channel:"+braced, "redisson_lock_token:"+braced
		require.Equal(t, channel, scripts.Channel(key))
		require.Equal(t, "holdfast_gone:"+braced+":o", tombstone(key, "o"))
		require.Equal(t, token, counter(key))
		require.Equal(t, "holdfast_permits:"+braced, permitRecord(key))
		require.Equal(t, "holdfast_permits_channel:"+braced, scripts.SemaphoreChannel(key))
		require.Equal(t, "redisson_lock_queue:"+braced, queue(key))
		require.Equal(t, []string{
			key, "redisson_lock_queue:" + braced, "redisson_lock_timeout:" + braced, "holdfast_heartbeat:" + braced, token,
		}, appendFairKeys(nil, key))
		require.Equal(t, channel+":client", Inbox(key, "client"))
		require.Equal(t, channel+":client:7", Inbox(key, "client:7"))
	}
}

func scores(key string) string     { return names.Of(names.ScoresPrefix, key) }
func heartbeats(key string) string { return names.Of(names.HeartbeatsPrefix, key) }
func channels(key string) string   { return scripts.Channel(key) + ":" }

// everyName is every name in Redis that belongs to key.
func everyName(key string) []string {
	all := []string{key}
	ids := []string{ownA, ownB, "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:1", "0123456789abcdef0123456789abcdef"}
	before, after := names.Braces(key)
	for _, id := range ids {
		all = append(all, before[1:]+key+after+":"+id+names.ReadHolds+":0")
	}
	for _, prefix := range names.Helpers {
		if prefix != names.TombstonePrefix && prefix != names.LatchPrefix {
			all = append(all, names.Of(prefix, key))
			continue
		}
		for _, id := range ids { // a lock has several, each with an owner or another id behind
			all = append(all, names.Of(prefix, key)+":"+id)
		}
	}
	return all
}

// No two keys have a name in common, and no key is a name of another.
func TestG1_NamesOfKeysNeverMeet(t *testing.T) {
	pieces := []string{"{", "}", ":", "a", "ab", "1", ownA, "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01"}
	pieces = append(pieces, names.ReadHolds, marker, scripts.Channel("a"))
	for _, prefix := range names.Helpers {
		pieces = append(pieces, prefix+":")
	}
	taken, met := map[string]string{marker: "a node"}, map[string]bool{}
	accepted, refused := 0, 0
	keys := []string{""}
	for range 4 {
		var longer []string
		for _, key := range keys {
			for _, piece := range pieces {
				longer = append(longer, key+piece)
			}
		}
		for _, key := range longer {
			if met[key] {
				continue
			}
			met[key] = true
			if check.Key(key) != nil {
				refused++
				continue
			}
			accepted++
			for _, name := range everyName(key) {
				if other, ok := taken[name]; ok {
					require.Equal(t, other, key, name)
				}
				taken[name] = key
			}
		}
		keys = longer
	}
	require.Greater(t, accepted, 10000)
	require.Greater(t, refused, 10000)
}

func TestF8_KeysOfOtherLocks(t *testing.T) {
	for _, key := range []string{
		marker, "{k}", "{a}b}", "{:}", "redisson_lock_token:{k}", "redisson_lock_queue:{k}", "redisson_lock_timeout:{a}:b",
		"holdfast_heartbeat:{k}", "holdfast_gone:{k}:" + ownA, "redisson_unlock_latch:{k}:0123456789abcdef0123456789abcdef",
		"{k}:3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:1:rwlock_timeout:1", "redisson_lock_queue:", "holdfast_heartbeat:k",
	} {
		require.Error(t, check.Key(key), key)
	}
	for _, key := range []string{
		"{}", "{", "}", "{k", "k}", "{k}b", "a{k}", "{{k}}", "{a}{b}", "holdfast_nodes", "holdfast_node:1", "holdfast_heartbeat",
		"redisson_lock_tokens:{k}", "holdfast", "r", "h", ":rwlock_timeout", "rwlock_timeout:1",
	} {
		require.NoError(t, check.Key(key), key)
	}
}

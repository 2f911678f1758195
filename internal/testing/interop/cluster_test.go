package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// What the languages share on one server they share on a Redis Cluster, over shard channels
// and over classic ones. Both choose alike by default.
func TestEachDeployment(t *testing.T) {
	needJava(t)
	for name, start := range map[string]func(testing.TB) redis{
		"Server": func(t testing.TB) redis { return one(redistest.Start(t)) }, "Shards": cluster, "Classic": classicCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			agents := startOn(t, s, longLeases, twoAgents...)
			for name, run := range map[string]func(*testing.T, redis, []*agent){
				"Shared": testShared, "Mixed": testMixed, "Names": testNames,
			} {
				t.Run(name, func(t *testing.T) { run(t, s, agents) })
			}
		})
	}
}

// Where the languages choose other channels, neither hears the other's releases. No two hold
// a lock, and a waiter looks again when the lease that it was told of is over.
func TestCluster_ChannelsDiffer(t *testing.T) {
	t.Parallel()
	needJava(t)
	s := cluster(t)
	no := false
	o := shortLeases
	o.Sharded = &no
	agents := []*agent{startOn(t, s, o, inGo)[0], startOn(t, s, shortLeases, inJava)[0]}
	bothWays(t, s, agents, mainKinds, func(p pair) {
		if p.waiter.lang == inGo {
			p.s.numsub = "NUMSUB"
		}
		p.holder.lock()
		wait := p.asleep(p.waiter)
		require.False(p, p.waiter.otherThread().try())
		p.holder.unlock()
		released := time.Now()
		p.holder.sees(got(p, wait).Text, 1)
		require.Less(p, time.Since(released), shortLeases.Lease+20*time.Second)
		p.waiter.unlock()
	})
}

// Both sides build the names of queues, channels and counters alike, whatever the
// name of the lock: else the other would not be woken.
func testNames(t *testing.T, s redis, agents []*agent) {
	keys := []string{
		"{tag}:rest", "a{tag}b", "{{tag}}", "{tag}}{}", "with a space", " ", "a:b:c", "%d \\ \" '", "schlüssel", "鍵🔑", "key*?[x]",
	}
	if !s.clustered() { // where Go refuses these
		keys = append(keys, "a{b", "a}b", "}{", "{}", "{")
	}
	for _, key := range keys {
		for _, kind := range allKinds {
			t.Run(fmt.Sprintf("%q/%s", key, kind), func(t *testing.T) {
				for i, a := range agents {
					b := agents[1-i]
					here, there := a.hand(t, key+kind, kind, key), b.hand(t, key+kind, kind, key)
					token := here.lock().Number
					wait := there.waits()
					awaitWaiters(t, s, kind, key, 1)
					there.otherThread().sees(here.do(t, here.command("held")).Text, 1)
					here.unlock()
					require.Equal(t, kind == "fenced", got(t, wait).Number > token)
					there.unlock()
					tidy(t, s, key)
				}
			})
		}
	}
}

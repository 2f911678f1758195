package quorum

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// Two clients of one server are one vote. The others may be enough without the second.
func TestTwoClientsOfOneServer(t *testing.T) {
	r := newActiveHarness(t, 3)
	for name, change := range guards {
		t.Run(name, func(t *testing.T) {
			if name == "guarded" {
				needGuard(t)
			}
			way := redistest.NewProxy(t, r.servers[2].Addr())
			again := r.servers[2].Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{way.Addr()} })
			of := func(clients ...rueidis.Client) *client {
				conf := Config{NodeTimeout: 10 * time.Second, Lease: lease, Longest: lease, Log: slog.New(slog.DiscardHandler)}
				change(&conf)
				c := &client{Quorum: New(clients, conf), t: t}
				t.Cleanup(c.Close)
				return c
			}
			c := of(r.servers[0].Client(t), r.servers[2].Client(t), again)
			for i := range 20 {
				key, owner := fmt.Sprint("key", i), fmt.Sprint(ownX, len(name), i)
				a, err := c.Acquire(locktest.Bounded(t), key, owner, lease, 10)
				require.NoError(t, err)
				require.True(t, a.OK)
				for _, node := range []int{0, 2} {
					require.Equal(t, 1, locktest.Number(t, r.servers[node], "HEXISTS", key, owner))
				}
				_, err = c.Release(locktest.Bounded(t), key, owner, 0)
				require.NoError(t, err)
			}
			all := c.Nodes(locktest.Bounded(t))
			require.True(t, all[0].Vote)
			require.True(t, all[1].Vote)
			require.False(t, all[2].Vote)
			require.ErrorContains(t, all[2].Err, "clients 1 ("+r.servers[2].Addr()+") and 2 ("+way.Addr()+") are of one server")

			c = of(r.servers[2].Client(t), r.servers[2].Client(t), again)
			for range 10 {
				a, err := c.get(ownA)
				require.False(t, a.OK)
				require.ErrorContains(t, err, "of one server")
				require.Equal(t, scripts.Refused, scripts.OutcomeOf(err))
			}
		})
	}
}

// An address that leads to the wrong server for a moment costs a vote for that moment, in rounds
// and in renewals.
func TestGuard_OneServerTwiceForAMoment(t *testing.T) {
	for name, change := range guards {
		t.Run(name, func(t *testing.T) {
			if name == "guarded" {
				needGuard(t)
			}
			r := newActiveHarness(t, 3)
			c := r.client(change, func(c *Config) { c.Lease = 2 * time.Millisecond })
			lead := func(to *redistest.Server, run string) {
				t.Helper()
				c.ways[2].Swap(to.Addr())
				c.sockets[2].Drop()
				locktest.Await(t, func() bool {
					_, _ = c.nodes[2].voting(locktest.Bounded(t))
					return c.nodes[2].run() == run
				})
			}
			gets := func() {
				t.Helper()
				locktest.Await(t, func() bool {
					a, _ := c.Acquire(locktest.Bounded(t), rand.Text(), fresh(ownB), lease, 10)
					return a.OK
				})
			}
			r.warm(c)
			right := c.nodes[2].run()
			lead(r.servers[1], c.nodes[1].run())
			c.cutOff(0)
			named := false
			for i := 0; i < 20 || !named; i++ {
				a, err := c.Acquire(locktest.Bounded(t), fmt.Sprint("key", i), fresh(ownA), lease, 10)
				require.False(t, a.OK, "a second holder")
				named = named || strings.Contains(err.Error(), "clients 1 ("+c.nodes[1].name+") and 2 ("+c.nodes[2].name+") are of one server")
				answers := make([]scripts.Answer, 1)
				require.Error(t, c.Renew(locktest.Bounded(t), lease, []string{"warm"}, []string{ownW}, answers))
				require.Equal(t, scripts.Unanswered, answers[0])
				require.Less(t, i, 1000)
			}
			c.reach(0)
			gets()
			lead(r.servers[2], right)
			c.cutOff(1)
			gets()
		})
	}
}

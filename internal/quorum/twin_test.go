package quorum

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

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

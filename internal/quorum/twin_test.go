package quorum

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/watchdog"
)

// An address that leads to the wrong server for a moment costs a vote for that moment, in rounds
// and in renewals.
func TestGuard_OneServerTwiceForAMoment(t *testing.T) {
	inBubbles(t, 3, guards, func(t *testing.T, r *harness, change func(*Config)) {
		c := r.warm(change, func(c *Config) { c.Lease = 2 * time.Millisecond })
		lead := func(to int, run string) {
			t.Helper()
			c.ways[2].Swap(r.servers[to].Addr())
			c.sockets[2].Drop()
			locktest.Await(t, func() bool {
				_, _ = c.nodes[2].voting(t.Context())
				return c.nodes[2].runID() == run
			})
		}
		gets := func() {
			t.Helper()
			locktest.Await(t, func() bool {
				a, _ := c.Acquire(t.Context(), asking(rand.Text(), fresh(ownB), lease))
				return a.OK
			})
		}
		right := c.nodes[2].runID()
		lead(1, c.nodes[1].runID())
		c.cutOff(0)
		named := false
		for i := 0; i < 20 || !named; i++ {
			a, err := c.Acquire(t.Context(), asking(fmt.Sprint("key", i), fresh(ownA), lease))
			require.False(t, a.OK, "a second holder")
			named = named || strings.Contains(err.Error(), "clients 1 ("+c.nodes[1].name+") and 2 ("+c.nodes[2].name+") reach the same server")
			answer, err := c.renew("warm", ownW)
			require.Error(t, err)
			require.Equal(t, watchdog.Unanswered, answer)
			require.Less(t, i, 1000)
		}
		c.ways[0].Refuse(false)
		gets()
		lead(2, right)
		c.cutOff(1)
		gets()
	})
}

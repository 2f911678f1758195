package contract

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// The server stands still while a call waits.
func observeOutage(c *harness) {
	s := c.observed(Options{Lease: 6 * time.Second})
	c.unlock(Lock(c.T, c.Locker, c.ctx, "k"))
	c.Server.Pause()
	began := time.Now()
	waits := []<-chan Acquired{GoLock(c.Locker, c.ctx, "k"), GoLock(c.Locker, c.ctx, "another")}
	await[holdfast.OutageBeganEvent](c, s, 1)
	require.Empty(c.T, of[holdfast.OutageEndedEvent](s))
	c.Server.Resume()
	for _, w := range waits {
		c.unlock(Got(c.T, w))
	}
	c.told(s)
	outage(c, s, time.Since(began))
}

// outage requires one outage, which has ended.
func outage(c *harness, s *seen, atMost time.Duration) {
	c.T.Helper()
	b, e := of[holdfast.OutageBeganEvent](s), of[holdfast.OutageEndedEvent](s)
	require.Len(c.T, b, 1)
	require.Len(c.T, e, 1)
	require.Error(c.T, b[0].Err)
	require.Equal(c.T, b[0].Server, e[0].Server)
	require.Equal(c.T, c.Kind.Cluster, b[0].Server != "")
	require.Positive(c.T, e[0].Lasted)
	require.Less(c.T, e[0].Lasted, atMost)
}

// Only renewals are sent.
func observeOutageHeld(c *harness) {
	s := c.observed(Options{Lease: 6 * time.Second})
	l := Lock(c.T, c.Locker, c.ctx, "k")
	c.Server.Pause()
	began := time.Now()
	await[holdfast.OutageBeganEvent](c, s, 1)
	failed := await[holdfast.RenewedEvent](c, s, 1)[0]
	require.Equal(c.T, "k", failed.Key)
	require.ErrorIs(c.T, failed.Err, holdfast.ErrUnknown)
	require.Positive(c.T, failed.Late)
	c.Server.Resume()
	await[holdfast.OutageEndedEvent](c, s, 1)
	Await(c.T, func() bool {
		return slices.ContainsFunc(of[holdfast.RenewedEvent](s), func(e holdfast.RenewedEvent) bool { return e.Err == nil })
	})
	c.unlock(l)
	require.Equal(c.T, []string{"acquired k by call", "released k"}, c.told(s, "holdfast"))
	outage(c, s, time.Since(began))
}

package scripts

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// However often callers come and give up, one call of Dedicate is under way for them, and what it
// brings is given back, or goes to the next.
func TestF40_LateConnectionIsGivenBack(t *testing.T) {
	s := redistest.Start(t)
	client := s.Client(t, func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 })
	var c connections
	_, giveBack := client.Dedicate()
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_, err := c.take(ctx, client)
		cancel()
		require.Equal(t, errNoConnection, err)
		require.Equal(t, Unavailable, OutcomeOf(err))
		require.True(t, c.overdue())
		require.Equal(t, 1, c.asked)
	}
	giveBack()
	until(t, func() bool { return !c.overdue() })
	for range 2 {
		conn, err := c.take(bounded(t), client)
		require.NoError(t, err)
		require.NoError(t, conn.Do(bounded(t), conn.B().Ping().Build()).Error())
		conn.giveBack()
	}
}

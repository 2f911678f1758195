package quorum

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The random delay before the next round doubles with each failed round, up to a bound that
// slow nodes raise. It may always be short.
func TestRetryDelay_Bounds(t *testing.T) {
	const longest, ms = 30 * time.Second, time.Millisecond
	for _, c := range []struct {
		trip  time.Duration
		tries int
		most  time.Duration
	}{
		{0, 0, ms / 10},
		{0, 20, ms / 10},
		{ms, 0, ms},
		{ms, 3, 8 * ms},
		{ms, 50, 250 * ms},
		{100 * ms, 50, 1600 * ms},
		{time.Second, 50, longest / 10},
	} {
		q := &Quorum{Config: Config{Longest: longest}}
		q.trips.Store(int64(c.trip))
		least, most := time.Hour, time.Duration(0)
		for range 20_000 {
			d := q.RetryDelay(c.tries)
			least, most = min(least, d), max(most, d)
		}
		require.Less(t, most, c.most, "%+v", c)
		require.Greater(t, most, c.most/2, "%+v", c)
		require.Less(t, least, c.most/100, "%+v", c)
		require.GreaterOrEqual(t, least, time.Duration(0))
	}
}

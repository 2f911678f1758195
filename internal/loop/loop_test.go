package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBackoffGrowsToATenthOfALeaseAndIsRandom(t *testing.T) {
	for lease, most := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 10 * time.Millisecond,
		2 * time.Second:        200 * time.Millisecond,
		time.Hour:              time.Second,
	} {
		var b Backoff
		seen := map[time.Duration]bool{}
		for i := range 50 {
			d := b.Within(lease)
			seen[d] = true
			require.Positive(t, d)
			require.LessOrEqual(t, d, most)
			if i > 10 {
				require.GreaterOrEqual(t, d, most/2)
			}
		}
		require.Greater(t, len(seen), 10, "clients that failed together must not come back together")
	}
}

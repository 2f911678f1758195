package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A key's lease ends when the clock says so, not when its time is over.
func TestSetClock(t *testing.T) {
	s := StartWithClock(t)
	s.Do(t, "SET", "k", "v", "PX", "30000")
	s.SetClock("+60")
	require.Eventually(t, func() bool {
		m := s.Do(t, "EXISTS", "k")
		n, err := m.ToInt64()
		return err == nil && n == 0
	}, 10*time.Second, time.Millisecond)

	s.SetClock("+0 x2")
	s.Do(t, "SET", "k", "v", "PX", "2000")
	began := time.Now()
	require.Eventually(t, func() bool {
		m := s.Do(t, "EXISTS", "k")
		n, err := m.ToInt64()
		return err == nil && n == 0
	}, 10*time.Second, time.Millisecond)
	require.Less(t, time.Since(began), 1900*time.Millisecond)
}

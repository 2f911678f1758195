package redistest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The clock jumps to where it is set and runs as it is told, from then on, also
// over a restart.
func TestSetClock(t *testing.T) {
	s := StartWithClock(t)
	awaitAhead(t, s, func() (float64, float64) { return 0, 0 })
	for _, c := range []struct {
		ahead time.Duration
		rate  float64
	}{{0, 2}, {60 * time.Second, 0.5}, {-3 * time.Second, 1}, {time.Second, 1.01}, {0, 1}} {
		before := time.Now()
		s.SetClock(c.ahead, c.rate)
		after := time.Now()
		gains := func(from time.Time) float64 { return c.ahead.Seconds() + time.Since(from).Seconds()*(c.rate-1) }
		for restart := range 2 {
			for range 3 {
				awaitAhead(t, s, func() (float64, float64) { return gains(before), gains(after) })
			}
			if restart == 0 {
				s.Restart()
			}
		}
	}
}

// A key's lease ends when the clock says so, not when its time is over.
func TestSetClock_Expiry(t *testing.T) {
	s := StartWithClock(t)
	s.Do(t, "SET", "k", "v", "PX", "30000")
	s.SetClock(time.Minute, 1)
	m := s.Do(t, "EXISTS", "k")
	n, err := m.ToInt64()
	require.NoError(t, err)
	require.Zero(t, n)
}

// A server with a clock leaves nothing in memory that processes share.
func TestSetClock_Swept(t *testing.T) {
	s := StartWithClock(t)
	shared := fmt.Sprintf("/dev/shm/faketime_shm_%d", s.proc.cmd.Process.Pid)
	require.FileExists(t, shared)
	s.Restart()
	require.NoFileExists(t, shared)
}

// awaitAhead requires that the clock of a server is ahead by so many seconds, between two
// bounds. A busy machine may be late between two looks, so it looks again.
func awaitAhead(t *testing.T, s *Server, due func() (float64, float64)) {
	t.Helper()
	const late = 0.2
	require.Eventually(t, func() bool {
		seen := ahead(t, s)
		a, b := due()
		return seen > min(a, b)-late && seen < max(a, b)+late
	}, Patience, time.Millisecond)
}

// ahead is by how many seconds the clock of a server is ahead.
func ahead(t *testing.T, s *Server) float64 {
	t.Helper()
	m := s.Do(t, "TIME")
	words, err := m.AsStrSlice()
	require.NoError(t, err)
	seconds, err := strconv.ParseFloat(words[0]+"."+fmt.Sprintf("%06s", words[1]), 64)
	require.NoError(t, err)
	return seconds - float64(time.Now().UnixMicro())/1e6
}

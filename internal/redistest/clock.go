package redistest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// faketime is where Debian's package libfaketime has the library that lets a
// process see another wall clock.
const faketime = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"

// libc must stand behind libfaketime, or redis-server hangs.
const libc = "/lib/x86_64-linux-gnu/libc.so.6"

// StartWithClock is Start for a server whose wall clock [Server.SetClock] can
// move. Its monotonic clock stays true.
//
// Without libfaketime the test is skipped, or fails if the environment variable
// CI is "true".
func StartWithClock(t testing.TB, args ...string) *Server {
	t.Helper()
	for _, library := range []string{faketime, libc} {
		if _, err := os.Stat(library); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("redistest: no %s", library)
			}
			t.Skipf("redistest: no %s; install libfaketime to run this test", library)
		}
	}
	clock := filepath.Join(t.TempDir(), "clock")
	require.NoError(t, os.WriteFile(clock, []byte("+0\n"), 0o600))
	return start(t, clock, args)
}

// environment is that of the server's process.
func (s *Server) environment() []string {
	if s.clock == "" {
		return nil
	}
	return append(os.Environ(), "LD_PRELOAD="+faketime+":"+libc,
		"FAKETIME_TIMESTAMP_FILE="+s.clock, "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1")
}

// SetClock moves the wall clock of a server that was started by StartWithClock,
// as libfaketime reads it: "+60" is 60 s ahead of the true time, "+0 x2" twice as fast from now on.
// It holds from the server's next look at the clock.
func (s *Server) SetClock(to string) {
	s.t.Helper()
	next := s.clock + ".next"
	require.NoError(s.t, os.WriteFile(next, []byte(to+"\n"), 0o600))
	require.NoError(s.t, os.Rename(next, s.clock))
}

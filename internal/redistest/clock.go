package redistest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// faketime returns what has to be loaded before redis-server for it to see another
// wall clock: the library of Debian's package libfaketime, and libc behind it,
// without which the server hangs. "" if there is none.
func faketime() string {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1") // fails only on a bad pattern
	for _, library := range found {
		libc := filepath.Join("/lib", filepath.Base(filepath.Dir(filepath.Dir(library))), "libc.so.6")
		if _, err := os.Stat(libc); err == nil {
			return library + ":" + libc
		}
	}
	return ""
}

// StartWithClock is Start for a server whose wall clock [Server.SetClock] can
// move. Its monotonic clock stays true.
//
// Without libfaketime the test is skipped, or fails if the environment variable
// CI is "true".
func StartWithClock(t testing.TB, args ...string) *Server {
	t.Helper()
	if faketime() == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("redistest: libfaketime is not installed")
		}
		t.Skip("redistest: libfaketime is not installed; install faketime to run this test")
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
	return append(os.Environ(), "LD_PRELOAD="+faketime(),
		"FAKETIME_TIMESTAMP_FILE="+s.clock, "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1")
}

// SetClock moves the wall clock of a server that was started by StartWithClock,
// as libfaketime reads it: "+60" is 60 s ahead of the true time, "+0 x2" runs twice
// as fast from now on. It holds from the server's next look at the clock.
func (s *Server) SetClock(to string) {
	s.t.Helper()
	next := s.clock + ".next"
	require.NoError(s.t, os.WriteFile(next, []byte(to+"\n"), 0o600))
	require.NoError(s.t, os.Rename(next, s.clock))
}

package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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
	if v, _ := installed(); strings.HasPrefix(v.text, "Redis 8.") {
		t.Skip("redistest: libfaketime of Debian 12 crashes", v.text)
	}
	return start(t, &Server{args: args, clock: filepath.Join(t.TempDir(), "clock")})
}

// environment is that of the server's process.
func (s *Server) environment() []string {
	if s.clock == "" {
		return nil
	}
	return append(os.Environ(), "LD_PRELOAD="+faketime(),
		"FAKETIME_TIMESTAMP_FILE="+s.clock, "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1")
}

// sweep removes what libfaketime leaves behind of a process that was killed.
func sweep(pid int) {
	for _, name := range []string{"faketime_shm_", "sem.faketime_sem_"} {
		_ = os.Remove(filepath.Join("/dev/shm", name+strconv.Itoa(pid))) // not there without libfaketime
	}
}

// wall is a clock that has been set: it was ahead by that much at a time, and has
// run at a rate since.
type wall struct {
	at    time.Time
	ahead time.Duration
	rate  float64
}

// SetClock moves the wall clock of a server that was started by StartWithClock: it
// is ahead of the true time by so much now, and runs at rate from now on. SetClock(0, 1)
// makes it true. It holds from the server's first look at the clock after SetClock.
func (s *Server) SetClock(ahead time.Duration, rate float64) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall = wall{time.Now(), ahead, rate}
	if s.proc != nil { // else its start writes it
		require.NoError(s.t, s.writeClock(s.proc.started))
		time.Sleep(2 * clockKept)
	}
}

// clockKept is how long Valkey 9.1 keeps a reading of the wall clock, to which it adds
// its monotonic clock. SetClock sleeps that out: a server that is paused cannot be asked.
const clockKept = time.Millisecond

// writeClock tells the wall clock to a process. libfaketime counts a rate from the
// start of the process, and keeps it until another is named. s.mu is held.
func (s *Server) writeClock(started time.Time) error {
	offset := s.wall.ahead.Seconds() - s.wall.at.Sub(started).Seconds()*(s.wall.rate-1)
	next := s.clock + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+.6f x%g\n", offset, s.wall.rate), 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.clock)
}

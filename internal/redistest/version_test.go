package redistest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseVersion(t *testing.T) {
	for line, want := range map[string]version{
		"Redis server v=6.2.14 sha=40305114:0 malloc=libc bits=64 build=dff95a8e7a99d269\n":            {"Redis 6.2.14", 6},
		"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0\n":   {"Redis 7.0.15", 7},
		"Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=1536df31c0395150\n":            {"Valkey 9.1.2", 9},
		"Redis server v=255.255.255 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=0123456789ab\n": {"Redis 255.255.255", 255},
	} {
		got, err := parseVersion(line)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := parseVersion("no server\n")
	require.ErrorContains(t, err, `"no server\n"`)
}

func TestOlderServersGetWhatDoesTheSame(t *testing.T) {
	args := strings.Fields("--enable-debug-command local --appendonly yes --busy-reply-threshold 20 --client-output-buffer-limit pubsub 1kb 1kb 1")
	require.Equal(t, args, version{major: 7}.understood(args))
	require.Equal(t,
		strings.Fields("--appendonly yes --lua-time-limit 20 --client-output-buffer-limit pubsub 1kb 1kb 1"),
		version{major: 6}.understood(args))
	require.Empty(t, version{major: 6}.understood(nil))
}

// What older servers do without, or call by another name, is there.
func TestStartOfAnyVersion(t *testing.T) {
	s := Start(t, "--enable-debug-command", "yes", "--busy-reply-threshold", "200", "--enable-protected-configs", "yes")
	s.Do(t, "DEBUG", "SLEEP", "0")
	s.Do(t, "CONFIG", "SET", "dir", s.Dir())
	m := s.Do(t, "CONFIG", "GET", "lua-time-limit") // of newer servers an alias
	got, err := m.AsStrMap()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"lua-time-limit": "200"}, got)
}

func TestNeedRedis7(t *testing.T) {
	v, err := installed()
	require.NoError(t, err)
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		NeedRedis7(r, "it has no sharded pub/sub")
	}()
	<-done
	require.Equal(t, map[bool]string{true: "skip", false: ""}[v.major < 7], r.end)
}

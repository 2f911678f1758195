package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/holdfast-go/holdfast/internal/locktest"
)

func init() {
	register("F22_PowerLost", func(t *testing.T, d Kind) { testForgotten(t, d, 2*short, losePower(t), writing...) }).real = true
	registerMany("F22_OneNodeLosesPower", func(t *testing.T, d Kind) {
		testOneForgets(t, d, true, func(s Server) { losePower(t)(Topology{s}) }, writing...)
	}).real = true
}

// writing are the arguments of a server that writes all it does to a file.
var writing = []string{"--appendonly", "yes", "--appendfsync", "always"}

// losePower ends a server and starts it again on a file that lacks the end, from the
// middle of the last hold of "k" on: what came before, such as the marker of a
// quorum's node, is remembered.
func losePower(t *testing.T) func(Topology) {
	return func(f Topology) {
		f.Each(func(s Server) {
			s.Kill()
			files, err := filepath.Glob(filepath.Join(Real(s).Dir(), "appendonlydir", "*.incr.aof"))
			require.NoError(t, err)
			if len(files) == 0 { // before Redis 7
				files = []string{filepath.Join(Real(s).Dir(), "appendonly.aof")}
			}
			require.Len(t, files, 1)
			all, err := os.ReadFile(files[0])
			require.NoError(t, err)
			hold := bytes.Index(bytes.ToLower(all), []byte("\r\nhset\r\n$1\r\nk\r\n"))
			if hold < 0 {
				hold = bytes.Index(bytes.ToLower(all), []byte("\r\nhincrby\r\n$1\r\nk\r\n"))
			}
			require.Positive(t, hold, "%q", all)
			require.NoError(t, os.Truncate(files[0], int64(hold+len("\r\nhset"))))
			s.Restart()
		})
	}
}

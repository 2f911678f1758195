package scripts

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each part is in a script. Package wire tests that each script is called.
func TestPartsAreUsed(t *testing.T) {
	all := Scripts()
	parts, err := fs.Glob(files, "parts/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, parts)
	for _, part := range parts {
		first, _, _ := strings.Cut(read(part), "\n")
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Values(all)), func(text string) bool {
			return strings.Contains(text, first+"\n")
		}), part)
	}
	for name, text := range all {
		require.NotContains(t, text, "--@", name)
	}
}

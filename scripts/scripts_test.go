package scripts

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each file is a script, or a part of some.
func TestFilesAreUsed(t *testing.T) {
	all := Scripts()
	err := fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.TrimSuffix(path.Base(file), ".lua")
		if folder := path.Dir(file); folder != "plain" {
			name = folder + "_" + name
		}
		first, _, _ := strings.Cut(read(file), "\n")
		require.True(t, all[name] != "" || slices.ContainsFunc(slices.Collect(maps.Values(all)), func(text string) bool {
			return path.Dir(file) == "parts" && strings.Contains(text, first+"\n")
		}), file)
		return nil
	})
	require.NoError(t, err)
	for name, text := range all {
		require.NotContains(t, text, "--@", name)
	}
}

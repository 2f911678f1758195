package api

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The way of a Lock in CONTRIBUTING has at most ten files, enters no package twice, and
// names functions that there are.
func TestTheWayOfALock(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	require.NoError(t, err)
	steps := regexp.MustCompile("(?m)^[0-9]+\\. `([^`]*)/([^`/]*)`(.*)$").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, steps)
	require.LessOrEqual(t, len(steps), 10)
	last, left := "", map[string]bool{}
	for _, s := range steps {
		folder, file := s[1], s[2]
		require.False(t, left[folder], "%s is entered again", folder)
		if last != folder {
			left[last], last = true, folder
		}
		source, err := os.ReadFile("../../" + folder + "/" + file)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile("`(?:[A-Za-z]+\\.)?([A-Za-z]+)`").FindAllStringSubmatch(s[3], -1) {
			require.Regexp(t, `(?m)^func (\(.*\) )?`+name[1]+`\(`, string(source), "%s/%s", folder, file)
		}
	}
}

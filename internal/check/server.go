package check

import (
	"strconv"
	"strings"
)

// Evicts reports whether a server with this maxmemory-policy may drop a held lock when it runs
// out of memory.
func Evicts(policy string) bool { return policy != "noeviction" }

// AtLeast reports whether the version of a server, such as "7.0.15", is that or a later one.
func AtLeast(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(first)
	b, _ := strconv.Atoi(second) // none is 0
	return err == nil && (a > major || a == major && b >= minor)
}

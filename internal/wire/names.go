package wire

import (
	"strings"

	"github.com/holdfast-go/holdfast/internal/check"
)

// appendNamed appends a name for each prefix. All are cut from one string: a fair call has so many
// that an allocation for each would slow it down visibly.
func appendNamed(names []string, key string, prefixes ...string) []string {
	before, after := check.Braces(key)
	around := len(before) + len(key) + len(after)
	size := 0
	for _, prefix := range prefixes {
		size += len(prefix) + around
	}
	var all strings.Builder
	all.Grow(size)
	for _, prefix := range prefixes {
		all.WriteString(prefix)
		all.WriteString(before)
		all.WriteString(key)
		all.WriteString(after)
	}
	rest := all.String()
	for _, prefix := range prefixes {
		length := len(prefix) + around
		names, rest = append(names, rest[:length]), rest[length:]
	}
	return names
}

func counter(key string) string { return check.Named(check.CounterPrefix, key) }

// tombstone returns the key whose presence says that owner has been given up and must no longer
// take key.
func tombstone(key, owner string) string {
	before, after := check.Braces(key)
	return check.TombstonePrefix + before + key + after + ":" + owner
}

// queue returns the list of owners that wait for key in order.
func queue(key string) string { return check.Named(check.QueuePrefix, key) }

// marker is the key in which a node of a quorum keeps since when it has been up
// without a gap. It belongs to the node, not to a lock.
const marker = check.Marker

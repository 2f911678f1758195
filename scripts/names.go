package scripts

import (
	"strings"

	"github.com/holdfast-go/holdfast/internal/check"
)

// named returns the name of something that belongs to key: prefix:{key}, so
// that both share a slot in Cluster, or prefix:key if the key has braces of its
// own. This is Redisson's rule, to the letter.
func named(prefix, key string) string {
	before, after := braces(key)
	return prefix + before + key + after
}

// braces returns what stands around key in such a name.
func braces(key string) (before, after string) {
	if strings.Contains(key, "{") {
		return ":", ""
	}
	return ":{", "}"
}

// appendNamed appends a name for each prefix. All are cut from one string: a fair call has so many
// that an allocation for each would slow it down visibly.
func appendNamed(names []string, key string, prefixes ...string) []string {
	before, after := braces(key)
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

// Channel returns the channel that is notified when key is released. The message is the
// digit 0.
func Channel(key string) string { return named("redisson_lock__channel", key) }

func counter(key string) string { return named(check.CounterPrefix, key) }

// tombstone returns the key whose presence says that owner has been given up and must no longer
// take key.
func tombstone(key, owner string) string {
	before, after := braces(key)
	return check.TombstonePrefix + before + key + after + ":" + owner
}

// queue returns the list of owners that wait for key in order.
func queue(key string) string { return named(check.QueuePrefix, key) }

// marker is the key in which a node of a quorum keeps since when it has been up
// without a gap. It belongs to the node, not to a lock.
const marker = check.Marker

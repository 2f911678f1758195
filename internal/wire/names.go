package wire

import (
	"strings"

	"github.com/holdfast-go/holdfast/internal/names"
)

// appendNamed appends a name for each prefix. All are cut from one string: a fair call has so many
// that an allocation for each would slow it down visibly.
func appendNamed(all []string, key string, prefixes ...string) []string {
	before, after := names.Braces(key)
	around := len(before) + len(key) + len(after)
	size := 0
	for _, prefix := range prefixes {
		size += len(prefix) + around
	}
	var text strings.Builder
	text.Grow(size)
	for _, prefix := range prefixes {
		text.WriteString(prefix)
		text.WriteString(before)
		text.WriteString(key)
		text.WriteString(after)
	}
	rest := text.String()
	for _, prefix := range prefixes {
		length := len(prefix) + around
		all, rest = append(all, rest[:length]), rest[length:]
	}
	return all
}

func counter(key string) string { return names.Of(names.CounterPrefix, key) }

// tombstone returns the key whose presence says that owner has been given up and must no longer
// take key.
func tombstone(key, owner string) string {
	before, after := names.Braces(key)
	return names.TombstonePrefix + before + key + after + ":" + owner
}

// queue returns the list of owners that wait for key in order.
func queue(key string) string { return names.Of(names.QueuePrefix, key) }

const marker = names.Marker // of the node, not of a lock

package scripts

import "strings"

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

// appendNamed appends a name for each prefix. All are cut from one string: a fair
// call has so many that an allocation for each would be seen in its speed.
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

// Channel returns the channel on which releases of key are announced. The
// message is the digit 0.
func Channel(key string) string { return named("redisson_lock__channel", key) }

// Prefixes of the names of the fence counter; of the list and the sorted set of
// those who wait for a key in order; of the hash that tells which of their clients
// live.
const (
	counterPrefix = "redisson_lock_token"
	queuePrefix   = "redisson_lock_queue"
	scoresPrefix  = "redisson_lock_timeout"
	beatsPrefix   = "holdfast_beat"
)

// counter returns the key of the fence counter of key.
func counter(key string) string { return named(counterPrefix, key) }

// tombstone returns the key whose presence says that owner has been given up
// and must take key no more.
func tombstone(key, owner string) string {
	before, after := braces(key)
	return "holdfast_gone" + before + key + after + ":" + owner
}

// queue returns the list of those who wait for key in order.
func queue(key string) string { return named(queuePrefix, key) }

// marker is the key in which a node of a quorum keeps since when it has been up
// without a gap. It belongs to the node, not to a lock.
const marker = "holdfast_node"
